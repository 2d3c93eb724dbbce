import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toProcessEnd } from '../domain/process/process-end.ts'
import { createLog } from './log.ts'
import { createProcessLog } from './process-log.ts'

function setup(tag?: string) {
  let now = 1_000_000
  const log = createLog({ clock: { now: () => new Date(now) }, nowMs: () => now })
  const process = { pid: 7, tag, command: ['/bin/sh', '-c', 'echo hi'], user: 'user' }
  const processLog = createProcessLog(log, process, () => now)
  return {
    processLog,
    advance: (ms: number) => void (now += ms),
    print: (text: string | Buffer, kind: 'stdout' | 'stderr' | 'pty' = 'stdout') =>
      processLog.output(kind, Buffer.from(text)),
    /** Messages after the start message. */
    messages: () =>
      log
        .readAfter(0)
        .entries.map((entry): string => JSON.parse(entry).message)
        .slice(1),
    entries: () => log.readAfter(0).entries.map((entry): unknown => JSON.parse(entry)),
  }
}

test('start, output lines and end are logged with their process', () => {
  const { processLog, print, entries } = setup('a tag')
  print('one\n')
  print('two\r\n', 'stderr')
  processLog.ended(toProcessEnd({ by: 'exit', code: 3 }))
  const common = { logger: 'process', pid: '7', tag: 'a tag' }
  const command = { user: 'user', command: '/bin/sh -c echo hi' }
  assert.deepEqual(
    entries().map((entry) => [Object(entry).level, Object(entry).message, Object(entry).fields]),
    [
      ['info', 'Process started', { ...common, ...command }],
      ['info', 'one', { ...common, stream: 'stdout' }],
      ['info', 'two', { ...common, stream: 'stderr' }],
      ['info', 'Process ended', { ...common, exitCode: '3', status: 'exit status 3' }],
    ],
  )
})

test('a long tag or command is truncated', () => {
  const log = createLog({ clock: { now: () => new Date() }, nowMs: () => 0 })
  const process = { pid: 1, tag: 't'.repeat(9000), command: ['c'.repeat(9000)], user: 'root' }
  createProcessLog(log, process, () => 0)
  const [entry = ''] = log.readAfter(0).entries
  assert.ok(entry.length < 1600)
  assert.match(entry, /c… \(7976 more\)/)
})

test('a line in several chunks is logged as one, even if a character is split', () => {
  const { print, messages } = setup()
  for (const byte of Buffer.from('grüße\nan 🌊 alle\n')) print(Buffer.of(byte))
  assert.deepEqual(messages(), ['grüße', 'an 🌊 alle'])
})

test('stdout and stderr lines do not mix', () => {
  const { print, messages } = setup()
  print('out')
  print('err', 'stderr')
  print('put\n')
  print('or\n', 'stderr')
  assert.deepEqual(messages(), ['output', 'error'])
})

test('empty lines are skipped; the last line needs no newline', () => {
  const { processLog, print, messages } = setup()
  print('\n\na\n\nb')
  processLog.ended(toProcessEnd({ by: 'signal', signal: 9 }))
  assert.deepEqual(messages(), ['a', 'b', 'Process ended'])
})

test('a long line is truncated, however it is chunked', () => {
  for (const pieces of [1, 3, 500]) {
    const { print, messages } = setup()
    const size = 300_000 / pieces
    for (let i = 0; i < pieces; i += 1) print('x'.repeat(size))
    print('\nshort\n')
    assert.deepEqual(messages(), [`${'x'.repeat(2048)}… (297952 bytes more)`, 'short'])
  }
})

test('terminal output is not logged', () => {
  const { print, messages } = setup()
  print('secret\r\n', 'pty')
  assert.deepEqual(messages(), [])
})

test('past the rate limit output is counted in bytes instead of logged', () => {
  const { print, messages, advance } = setup()
  const chunk = 'yes\n'.repeat(8192)
  for (let i = 0; i < 100; i += 1) print(chunk)
  const lines = messages()
  assert.equal(lines.length, 501)
  const expected = 100 * chunk.length - 500 * 4
  assert.equal(
    lines.at(-1),
    `Log rate limit exceeded: dropped 0 entries and ${expected} bytes of output`,
  )
  advance(100)
  // The rest of a line whose start was dropped is not logged.
  print('es\nonce\nmore\n')
  const dropped = 'Log rate limit exceeded: dropped 0 entries and 2 bytes of output'
  assert.deepEqual(messages().slice(501), ['once', 'more', dropped])
})
