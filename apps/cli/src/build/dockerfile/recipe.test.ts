import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDockerfile } from './recipe.ts'

function steps(text: string, buildArgs?: Record<string, string>) {
  return readDockerfile(`FROM base\n${text}`, buildArgs).steps.map(({ type, args }) => [
    type,
    ...args,
  ])
}

test('instructions become steps', () => {
  const recipe = readDockerfile(`# syntax=docker/dockerfile:1
FROM --platform=linux/amd64 debian:12 AS only
RUN apt-get update \\
  # a comment inside
  && apt-get install -y figlet
WORKDIR /srv
USER worker
EXPOSE 80
CMD ["python3", "-m", "http.server", "it's"]
`)
  assert.equal(recipe.fromImage, 'debian:12')
  assert.deepEqual(
    recipe.steps.map(({ type, args }) => [type, ...args]),
    [
      ['RUN', 'apt-get update   && apt-get install -y figlet'],
      ['WORKDIR', '/srv'],
      ['USER', 'worker'],
    ],
  )
  assert.equal(recipe.startCommand, String.raw`python3 -m http.server 'it'\''s'`)
})

test('an ENTRYPOINT takes CMD as its arguments', () => {
  const { startCommand } = readDockerfile('FROM a\nENTRYPOINT ["run"]\nCMD ["a b"]')
  assert.equal(startCommand, "run 'a b'")
  assert.equal(readDockerfile('FROM a\nENTRYPOINT run it\nCMD x').startCommand, 'run it')
  assert.equal(readDockerfile('FROM a').startCommand, undefined)
})

const expansions = [
  ['ENV A=1 B="two words" C=three\\ words', ['A', '1', 'B', 'two words', 'C', 'three words']],
  ['ENV A the rest of it', ['A', 'the rest of it']],
  ["ENV A='$HOME' B=\\$HOME", ['A', String.raw`\$HOME`, 'B', String.raw`\$HOME`]],
  ['ENV A=$HOME/bin', ['A', '${HOME}/bin']],
  ['ENV A=${HOME:-x} B=${HOME:+y}', ['A', 'x', 'B', '']],
  ['ENV A="say \\"hi\\""', ['A', 'say "hi"']],
] as const

for (const [line, args] of expansions) {
  test(`${line} is expanded as in Docker`, () => {
    assert.deepEqual(steps(line), [['ENV', ...args]])
  })
}

test('a variable of an ENV line gets its value from before the line', () => {
  assert.deepEqual(steps('ENV A=old\nENV A=new B=$A').at(-1), ['ENV', 'A', 'new', 'B', 'old'])
})

test('ARG takes --build-arg, its default, or the value from before FROM, but never wins over ENV', () => {
  const text = 'ARG TAG=12\nFROM debian:$TAG\nARG TAG\nARG A=a\nENV B=b\nARG B=other\nARG NONE'
  const { fromImage, steps: made } = readDockerfile(text, { A: 'given $' })
  assert.equal(fromImage, 'debian:12')
  assert.deepEqual(
    made.map(({ args }) => args),
    [
      ['TAG', '12'],
      ['A', String.raw`given \$`],
      ['B', 'b'],
    ],
  )
  assert.equal(readDockerfile(text, { TAG: '13' }).fromImage, 'debian:13')
})

test('COPY has sources, target, owner and mode, with variables expanded', () => {
  const { steps: made } = readDockerfile(
    'FROM a\nARG D=/srv\nCOPY --chown=u:g --chmod=0755 a ${D}/b\nADD ["x y", "z", "/t/"]',
  )
  assert.deepEqual(
    made.flatMap(({ copy }) => copy ?? []),
    [
      { sources: ['a'], target: '/srv/b', owner: 'u:g', mode: '0755', line: 3 },
      { sources: ['x y', 'z'], target: '/t/', owner: '', mode: '', line: 4 },
    ],
  )
})

const refusals = [
  ['RUN x', /Line 1 .*before FROM/],
  ['', /no FROM/],
  ['FROM a\nFROM b', /Line 2 .*one stage/],
  ['FROM a\n\nRUN --mount=type=cache,target=/x y', /Line 3 .*--mount/],
  ['FROM a\nRUN cat <<EOF\nx\nEOF', /here-documents/],
  ['FROM a\nCOPY --from=b x y', /--from/],
  ['FROM a\nCOPY x', /source/],
  ['FROM a\nCOPY x y z', /ends with \//],
  ['FROM a\nCOPY --chmod=u+x x y', /0755/],
  ['FROM a\nCOPY $HOME/x y', /\$\{HOME\} has no value/],
  ['FROM a\nADD https://example.com/x y', /ADD of a URL/],
  ['FROM a\nADD x.tar.gz y', /unpack/],
  ['FROM a\nONBUILD RUN x', /ONBUILD is not supported/],
  ['FROM a\nSHELL ["/bin/zsh"]', /SHELL is not supported/],
  ['FROM a\nFROBNICATE x', /no instruction FROBNICATE/],
  ['FROM a\nENV A', /ENV name=value/],
  ["FROM a\nENV A='x", /quote is not closed/],
  ['FROM a\nENV A=${B/x/y}', /not supported/],
  ['FROM $X', /\$\{X\} has no value/],
] as const

for (const [text, message] of refusals) {
  test(`${JSON.stringify(text)} is refused with the line`, () => {
    assert.throws(() => readDockerfile(text), { name: 'UsageError', message })
  })
}

test('a build argument that no ARG takes is refused', () => {
  assert.throws(() => readDockerfile('FROM a', { X: '1' }), /no ARG X/)
})
