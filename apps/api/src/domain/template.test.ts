import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseReference, selectsBuild } from './template.ts'

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

test('no tag, the default tag and the id of the build select the build', () => {
  const template = {
    id: 't',
    buildId: '6a3c5f0e-0000-4000-8000-000000000000',
    alias: 'base',
    public: true,
    nodeTemplateId: 'base',
    resources: { cpuCount: 1, memoryMb: 128, diskSizeMb: 0 },
  }
  const tags = [
    undefined,
    'default',
    template.buildId,
    'v1',
    '00000000-0000-4000-8000-000000000000',
  ]
  assert.deepEqual(
    tags.map((tag) => selectsBuild(template, tag)),
    [true, true, true, false, false],
  )
})
