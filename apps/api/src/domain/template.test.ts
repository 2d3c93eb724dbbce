import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTag, mayUse, parseReference } from './template.ts'

for (const [text, expected] of [
  ['base', { namespace: undefined, name: 'base', tag: undefined }],
  [' Base ', { namespace: undefined, name: 'base', tag: undefined }],
  ['base:default', { namespace: undefined, name: 'base', tag: 'default' }],
  ['team/my_tpl-1:v1.2', { namespace: 'team', name: 'my_tpl-1', tag: 'v1.2' }],
] as const) {
  test(`the reference ${JSON.stringify(text)} is understood`, () => {
    assert.deepEqual(parseReference(text), expected)
  })
}

for (const text of [
  '',
  ' ',
  ':default',
  'a/b/c',
  'a:b:c',
  'a b',
  '../x',
  'bäse',
  'a/',
  'a:',
  'x'.repeat(129),
]) {
  test(`the reference ${JSON.stringify(text.slice(0, 20))} is malformed`, () => {
    assert.throws(() => parseReference(text), /templateID is malformed/)
  })
}

test('a team may use public templates and its own', () => {
  const template = { id: 't', teamId: 'ours', public: false, isSnapshot: false }
  const asked = (changed: object, teamId: string) => mayUse({ ...template, ...changed }, teamId)
  assert.deepEqual(
    [asked({}, 'ours'), asked({}, 'theirs'), asked({ public: true }, 'theirs')],
    [true, false, true],
  )
  assert.equal(asked({ teamId: undefined }, 'ours'), false)
})

test('a tag must not look like the id of a build', () => {
  checkTag('v1')
  checkTag('6a3c5f0e')
  assert.throws(() => checkTag('6a3c5f0e-0000-4000-8000-000000000000'), { kind: 'invalid' })
})
