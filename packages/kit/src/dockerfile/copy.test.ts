import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDockerfile } from './parse.ts'

function parse(text: string, buildArgs: Record<string, string> = {}) {
  return parseDockerfile(text, { buildArgs, hasFiles: true })
}

test('COPY has sources, target, owner and mode, with variables expanded', () => {
  const { steps } = parse(
    'FROM a\nARG D=/srv\nCOPY --link --chown=u:g --chmod=0755 a ${D}/b\nADD ["x y", "z", "/t/"]\nCOPY a\\$b "c d"',
  )
  assert.deepEqual(
    steps.flatMap(({ copy }) => copy ?? []),
    [
      { sources: ['a'], target: '/srv/b', owner: 'u:g', mode: '0755', line: 3 },
      { sources: ['x y', 'z'], target: '/t/', owner: '', mode: '', line: 4 },
      { sources: ['a$b'], target: 'c d', owner: '', mode: '', line: 5 },
    ],
  )
})

test('ARG takes the build argument, its default, or the value from before FROM, but never wins over ENV', () => {
  const text = 'ARG TAG=12\nFROM debian:$TAG\nARG TAG\nARG A=a\nENV B=b\nARG B=other\nARG NONE'
  const { from, steps } = parse(text, { A: 'given $' })
  assert.equal(from, 'debian:12')
  assert.deepEqual(
    steps.map(({ args }) => args),
    [
      ['TAG', '12'],
      ['A', String.raw`given \$`],
      ['B', 'b'],
    ],
  )
  assert.equal(parse(text, { TAG: '13' }).from, 'debian:13')
})

const refusals = [
  ['COPY --from=b x y', /^Line 2 of the Dockerfile: --from/],
  ['COPY --parents x y', /--parents of COPY is not supported/],
  ['COPY x', /write COPY as "COPY source… target"/],
  ['COPY --link', /write COPY as/],
  ['COPY x y z', /ends with \//],
  ['COPY --chmod=u+x x y', /0755/],
  ['COPY $HOME/x y', /"HOME" is not known here/],
  ['ENV D=$HOME/d\nCOPY x $D', /^Line 3 .*"D" is not known here/],
  ['COPY <<EOF /x', /here-documents/],
  ['ADD https://example.com/x y', /ADD of a URL/],
  ['ADD x.tar.gz y', /unpack/],
] as const

for (const [lines, message] of refusals) {
  test(`${JSON.stringify(lines)} is refused`, () => {
    assert.throws(() => parse(`FROM a\n${lines}`), { reason: 'invalid_dockerfile', message })
  })
}

test('a build argument with a NUL is refused', () => {
  assert.throws(() => parse('FROM a\nARG X', { X: 'a\0b' }), /not text/)
})
