import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureCpuMs } from '../cpu-time.ts'
import { Fault } from '../fault.ts'
import { parseDockerfile as parse } from './parse.ts'
import type { Dockerfile } from './parse.ts'

function parseDockerfile(text: string): Dockerfile {
  return parse(text, { hasFiles: false })
}

function stepsOf(...lines: string[]): string[][] {
  const { steps } = parseDockerfile(['FROM debian', ...lines].join('\n'))
  return steps.map(({ type, args }) => [type, ...args])
}

function startOf(...lines: string[]): string | undefined {
  return parseDockerfile(['FROM debian', ...lines].join('\n')).startCommand
}

function messageOf(text: string): string {
  try {
    parseDockerfile(text)
  } catch (error) {
    assert.ok(error instanceof Fault, String(error))
    assert.deepEqual([error.kind, error.reason], ['invalid', 'invalid_dockerfile'])
    return error.message
  }
  throw new Error('it was taken')
}

test('a Dockerfile becomes an image, steps and a command', () => {
  const text = `# syntax=docker/dockerfile:1
    ARG VERSION=24
    FROM --platform=linux/amd64 node:\${VERSION}-slim AS app
    LABEL org.example.title="app"
    MAINTAINER me
    ENV PORT=3000 MODE=production
    RUN apt-get update && \\
        # what the app needs
        apt-get install -y git

    WORKDIR /app
    EXPOSE 3000
    VOLUME /data
    STOPSIGNAL SIGINT
    HEALTHCHECK --interval=5s CMD curl -f localhost
    CMD ["node", "server.js"]
  `
  assert.deepEqual(parseDockerfile(text), {
    from: 'node:24-slim',
    steps: [
      {
        type: 'ENV',
        args: ['PORT', '3000', 'MODE', 'production'],
        title: 'ENV PORT=3000 MODE=production',
      },
      {
        type: 'RUN',
        args: ['apt-get update &&         apt-get install -y git'],
        title: 'RUN apt-get update &&         apt-get install -y git',
      },
      { type: 'WORKDIR', args: ['/app'], title: 'WORKDIR /app' },
    ],
    startCommand: 'node server.js',
    declaredArgs: new Set(['VERSION']),
  })
})

for (const [line, command] of [
  ["RUN printf 'a\\nb   c'  # d", "printf 'a\\nb   c'  # d"],
  ['RUN ["echo", "a b", "it\'s", "$HOME", "x=y", ""]', `echo 'a b' 'it'\\''s' '$HOME' 'x=y' ''`],
  ['RUN ["echo", 1]', '["echo", 1]'],
  ['RUN [ -f /x ] && echo yes', '[ -f /x ] && echo yes'],
  ['RUN cat <<< hello', 'cat <<< hello'],
  ['RUN echo "a <<b" $((1<<4))', 'echo "a <<b" $((1<<4))'],
  ['run\techo   a', 'echo   a'],
  ['RUN echo a\\\n\n# c\n  # d\n\tb', 'echo a\tb'],
  ['RUN echo a \\  \n  b', 'echo a   b'],
  ['RUN echo a \\\r\n  b\r', 'echo a   b'],
  ['R\\\nUN echo a', 'echo a'],
  ['RUN echo a \\', 'echo a'],
  ['RUN echo a\\\\', 'echo a\\\\'],
] as const) {
  test(`${JSON.stringify(line)} runs ${command}`, () => {
    assert.deepEqual(stepsOf(line), [['RUN', command]])
  })
}

for (const [line, ...args] of [
  ['ENV a=b', 'a', 'b'],
  ['ENV a b  c', 'a', 'b  c'],
  ['ENV a "b" \'c\'', 'a', 'b c'],
  ['ENV a b=c', 'a', 'b=c'],
  ['ENV a="b  c" d=\'e "f"\' g=h\\ i j=', 'a', 'b  c', 'd', 'e "f"', 'g', 'h i', 'j', ''],
  ['ENV a="\\"\\$x\\\\\\n" b=\\$x', 'a', '"\\$x\\\\n', 'b', '\\$x'],
  ["ENV a='$x' b=$ c=$5", 'a', '\\$x', 'b', '\\$', 'c', '\\$5'],
  ['ENV a=1 a=2', 'a', '2'],
  ['ENV a=/opt:$PATH b=${PATH}:/opt', 'a', '/opt:$PATH', 'b', '${PATH}:/opt'],
  ['ENV a=${x:-b} c=${x-"d e"} f=${x:+g} h=${x+i}', 'a', 'b', 'c', 'd e', 'f', '', 'h', ''],
  ['ENV a=${x:-${y:-z}}', 'a', 'z'],
  ['ENV __proto__=a constructor=b', '__proto__', 'a', 'constructor', 'b'],
  ['ARG a=b c="d e"', 'a', 'b', 'c', 'd e'],
]) {
  test(`${line} sets ${JSON.stringify(args)}`, () => {
    assert.deepEqual(stepsOf(line ?? ''), [['ENV', ...args]])
  })
}

test('variables have the values of the lines before', () => {
  assert.deepEqual(
    stepsOf(
      'ENV a=1 e=',
      'ENV a=2 b=$a c=${a}x d="$a"',
      'ENV f=${e:-x} g=${e-x} h=${a:+y} i=${a:?no}',
      'WORKDIR /srv/$a/my files',
      'USER "u$b"',
    ),
    [
      ['ENV', 'a', '1', 'e', ''],
      ['ENV', 'a', '2', 'b', '1', 'c', '1x', 'd', '1'],
      ['ENV', 'f', 'x', 'g', '', 'h', 'y', 'i', '2'],
      ['WORKDIR', '/srv/2/my files'],
      ['USER', 'u1'],
    ],
  )
})

test('a value with a variable of the image is not inserted into later values', () => {
  assert.deepEqual(stepsOf('ENV PATH=/a:$PATH', 'ENV PATH=/b:$PATH', 'WORKDIR ${PATH:-x}'), [
    ['ENV', 'PATH', '/a:$PATH'],
    ['ENV', 'PATH', '/b:${PATH}'],
    ['WORKDIR', '${PATH}'],
  ])
})

test('an ARG without a default is empty, and none of the environment', () => {
  assert.deepEqual(stepsOf('ARG a', 'WORKDIR /x$a'), [['WORKDIR', '/x']])
})

test('an ARG does not change what ENV set', () => {
  assert.deepEqual(stepsOf('ENV a=1', 'ARG a=2', 'WORKDIR /$a'), [
    ['ENV', 'a', '1'],
    ['WORKDIR', '/1'],
  ])
})

test('an ARG before FROM counts after it only where it is named again', () => {
  const text = 'ARG a=1 b=2\nARG c=$a\nFROM x:$c\nARG a\nWORKDIR /$a$b\nARG a'
  const { from, steps } = parseDockerfile(text)
  assert.equal(from, 'x:1')
  assert.deepEqual(
    steps.map(({ type, args }) => [type, ...args]),
    [
      ['ENV', 'a', '1'],
      ['WORKDIR', '/1$b'],
    ],
  )
})

test('the escape directive takes the place of the backslash', () => {
  const text = '# syntax=x\r\n#ESCAPE = `\r\nFROM debian\r\nRUN a `\r\n  C:\\\r\nENV b=c` d\\'
  assert.deepEqual(
    parseDockerfile(text).steps.map(({ args }) => args),
    [['a   C:\\'], ['b', 'c d\\']],
  )
})

test('a directive after a comment is a comment', () => {
  assert.equal(messageOf('# hello\n# escape=x'), 'The Dockerfile has no FROM')
})

for (const [lines, command] of [
  [['CMD npm  start'], 'npm  start'],
  [['CMD ["npm", "run", "a b"]'], "npm run 'a b'"],
  [['CMD ["a=b"]'], "'a=b'"],
  [['CMD a', 'CMD b'], 'b'],
  [['CMD a', 'CMD []'], undefined],
  [['ENTRYPOINT ["e"]'], 'e'],
  [['CMD ["c"]', 'ENTRYPOINT ["e", "f"]'], 'e f c'],
  [['ENTRYPOINT ["e"]', 'CMD c $x'], "e /bin/sh -c 'c $x'"],
  [['ENTRYPOINT e $x', 'CMD ["c"]'], 'e $x'],
  [['ENTRYPOINT ["e"]', 'ENTRYPOINT []', 'CMD c'], 'c'],
  [[], undefined],
] as const) {
  test(`${lines.join(', ') || 'no command'} starts ${command}`, () => {
    assert.equal(startOf(...lines), command)
  })
}

for (const [text, message] of [
  ['', /^The Dockerfile has no FROM/],
  [' \n\t\r\n', /The Dockerfile has no FROM/],
  ['# only\n  # comments', /The Dockerfile has no FROM/],
  ['\\', /The Dockerfile has no FROM/],
  ['ARG a=1', /The Dockerfile has no FROM/],
  ['\uFEFF\\\n', /The Dockerfile has no FROM/],
  ['RUN a\nFROM b', /^Line 1 of the Dockerfile: RUN comes before FROM/],
  ['FROM', /FROM has no arguments/],
  ['FROM a b', /write FROM as/],
  ['FROM a AS', /write FROM as/],
  ['FROM a AS b c', /write FROM as/],
  ['FROM --platform=x', /write FROM as/],
  ['FROM --other=x a', /write FROM as/],
  ['FROM $a', /FROM has a variable without a value/],
  ['ARG a\nFROM $a', /FROM has a variable without a value/],
  ['FROM a AS b\n\nFROM c', /^Line 3 of the Dockerfile: there is more than one FROM/],
  ['FROM a\nCOPY . /', /COPY is not supported.*Template\.build/],
  ['FROM a\nADD b c', /ADD is not supported.*Template\.build/],
  ['FROM a\nSHELL ["x"]', /SHELL is not supported/],
  ['FROM a\nONBUILD RUN x', /ONBUILD is not supported/],
  ['FROM a\nFOO x', /there is no instruction "FOO"/],
  ['FROM a\nconstructor x', /there is no instruction "CONSTRUCTOR"/],
  ['FROM a\nRUN', /RUN has no arguments/],
  ['FROM a\nRUN []', /RUN has no command/],
  ['FROM a\nRUN --mount=type=cache,target=/x y', /options of RUN/],
  ['FROM a\nRUN <<EOF\nFROM b\nEOF', /here-documents/],
  ['FROM a\nRUN cat 3<<-"E O F"', /here-documents/],
  ['FROM a\nRUN ["a\\u0000b"]', /not text/],
  ['FROM a\nCMD ["\\ud800"]', /not text/],
  ['FROM a\nENV b', /write ENV as/],
  ['FROM a\nENV b=c d', /write ENV as/],
  ['FROM a\nENV =c', /needs a variable name/],
  ['FROM a\nENV $b=c', /needs a variable name/],
  ['FROM a\nARG "b c"', /needs a variable name/],
  ['FROM a\nENV b="c', /double quote is not closed/],
  ["FROM a\nUSER 'c", /single quote is not closed/],
  ['FROM a\nWORKDIR ""', /WORKDIR is empty/],
  ['FROM a\nENV b=${c', /are supported/],
  ['FROM a\nENV b=${c:-d', /has no "}"/],
  ['FROM a\nENV b=${}', /has no name/],
  ['FROM a\nENV b=${c%d}', /are supported/],
  ['FROM a\nENV b=${c:?}', /"c" is required/],
  ['# escape=x\nFROM a', /^Line 1 of the Dockerfile: the escape directive/],
  ['FROM a\nRUN \ud800', /not text/],
  ['FROM a\nRUN a\0b', /not text/],
  [`FROM a\n#${'ä'.repeat(128 * 1024)}`, /larger than 256 KiB/],
  [`FROM a\n${'RUN b\n'.repeat(200)}`, /more than 200 instructions/],
  [`FROM a\nENV b=${'${c:-'.repeat(33)}${'}'.repeat(33)}`, /more than 32 deep/],
  [`FROM a\nENV b=cc\n${'ENV b=$b$b\n'.repeat(100)}`, /more than 1024 KiB/],
  [`FROM a\nENV b=${'c'.repeat(4096)}\nENV ${'d=$b '.repeat(300)}`, /more than 1024 KiB/],
] as const) {
  test(`${JSON.stringify(text.slice(0, 50))} is refused`, () => {
    assert.match(messageOf(text), message)
  })
}

test('200 instructions and 256 KiB are taken', () => {
  const lines = ['FROM a', ...Array<string>(199).fill('RUN b')].join('\n')
  assert.equal(parseDockerfile(lines.padEnd(256 * 1024)).steps.length, 199)
})

/** Inputs of the maximum size that would be slow in a parser with backtracking. */
const slow = {
  'stages and comments': 'FROM a\n'.repeat(18_000) + '#\n'.repeat(60_000),
  comments: '#\n'.repeat(130_000),
  'directives of spaces': `# ${' '.repeat(100_000)}a${' '.repeat(100_000)}b`,
  instructions: 'a\n'.repeat(130_000),
  options: `FROM a\nHEALTHCHECK ${'--a '.repeat(65_000)}`,
  'here-documents': `FROM a\nRUN ${'<< '.repeat(85_000)}`,
  'continuation lines': `FROM a\nRUN ${'a\\\n'.repeat(85_000)}`,
  spaces: `FROM a\nRUN a${' '.repeat(250_000)}b \\${' '.repeat(1000)}c`,
  'escape characters': `FROM a\nENV a=${'\\'.repeat(250_000)}`,
  quotes: `FROM a\nENV a=${`"'`.repeat(125_000)}`,
  'open quotes': `FROM a\nENV ${`a='b `.repeat(50_001)}`,
  dollars: `FROM a\nENV a=${'$'.repeat(250_000)}`,
  'open references': `FROM a\nENV a=${'${a:-'.repeat(50_000)}`,
  'names of digits': `FROM a\nRUN ${'1'.repeat(250_000)}`,
  variables: `FROM a\nENV ${'a=$a '.repeat(50_000)}`,
  brackets: `FROM a\nCMD ${'['.repeat(250_000)}`,
  words: `FROM a\nCMD [${'"",'.repeat(80_000)}""]`,
  platforms: `FROM ${'--platform= '.repeat(20_000)}`,
  'one word': 'x'.repeat(256 * 1024),
}

for (const [name, text] of Object.entries(slow)) {
  test(`many ${name} do not take long`, async () => {
    const cpuMs = await measureCpuMs(() => assertTakenOrRefused(text))
    assert.ok(cpuMs < 2000, `${Math.round(cpuMs)} ms`)
  })
}

test('whatever is written is taken or refused', () => {
  const pieces =
    'FROM a|RUN|ENV|ARG|CMD|USER|WORKDIR|#|# escape=`|\\|`|\n|\r\n| |\t|"|\'|$|{|}|:-|:+|?|=|a|b=c|[|]|,|<<|--|\uFEFF|\u2028|😀|é'.split(
      '|',
    )
  let state = 1
  const below = (limit: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % limit
  }
  for (let round = 0; round < 5000; round += 1) {
    const body = Array.from({ length: below(30) }, () => pieces[below(pieces.length)]).join('')
    assertTakenOrRefused(`FROM a\nENV ${body}`)
    assertTakenOrRefused(body)
  }
})

function assertTakenOrRefused(text: string): void {
  try {
    const recipe = parseDockerfile(text)
    assert.ok(
      JSON.stringify(recipe).length < 4 * 1024 * 1024,
      'the recipe is far larger than its text',
    )
  } catch (error) {
    assert.ok(error instanceof Fault, `${JSON.stringify(text.slice(0, 200))}: ${String(error)}`)
    assert.equal(error.kind, 'invalid')
    assert.ok(error.message.length < 300)
  }
}
