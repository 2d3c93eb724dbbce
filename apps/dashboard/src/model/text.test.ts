import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatAge, formatBytes, formatDuration, parseDuration, secondsUntil } from './format.ts'
import { visibleLine, visibleName } from './visible-text.ts'
import { measureCpuMs } from '@atoll/kit/cpu-time'

test('bytes and durations have at most two digits of detail', () => {
  assert.deepEqual([0, 1023, 1024, 10 * 1024, 2 ** 30].map(formatBytes), [
    '0 B',
    '1023 B',
    '1.0 KiB',
    '10 KiB',
    '1.0 GiB',
  ])
  assert.deepEqual([0, 59, 61, 3_600, 90_061].map(formatDuration), [
    '0 s',
    '59 s',
    '1 min 1 s',
    '1 h',
    '1 d 1 h',
  ])
})

test('ages and countdowns never go below zero, and an unknown time is said', () => {
  const now = Date.parse('2026-01-01T00:00:10Z')
  assert.equal(formatAge('2026-01-01T00:00:00Z', now), '10 s ago')
  assert.equal(formatAge('2026-01-01T00:01:00Z', now), 'just now')
  assert.deepEqual([formatAge(null, now), formatAge('nonsense', now)], ['never', 'unknown'])
  assert.equal(secondsUntil('2026-01-01T00:00:00Z', now), 0)
})

test('durations are read with and without a unit', () => {
  assert.deepEqual(
    ['90', '90s', '10m', ' 2 h ', '1d'].map(parseDuration),
    [90, 90, 600, 7_200, 86_400],
  )
  for (const text of ['', '-1', '1.5h', '10x', 'h', '1h30m'])
    assert.equal(parseDuration(text), undefined, text)
})

test('names show characters that mislead', () => {
  assert.equal(visibleName('abc\u202egpj.exe'), 'abc<U+202E>gpj.exe')
  assert.equal(visibleName('a\nb\tc\u0000\u200b'), 'a⏎b⇥c<U+0000><U+200B>')
  assert.equal(visibleName('x'.repeat(500)).length, 301)
  assert.equal(visibleName('ä 日本 👍'), 'ä 日本 👍')
})

test('lines lose escape sequences and say how much is left out', () => {
  assert.equal(visibleLine('\u001b[31mred\u001b[0m \u001b]0;title\u0007end\r'), 'red end')
  assert.equal(visibleLine('\u001b]8;;http://evil.example\u001b\\link\u001b]8;;\u001b\\'), 'link')
  assert.match(visibleLine('a'.repeat(5_000)), /^a{4000}… \(1,000 more characters\)$/)
  assert.equal(visibleLine('\u202eevil'), '<U+202E>evil')
})

test('a line of 10 MB costs little', async () => {
  const line = '\u001b]'.repeat(5_000_000)
  assert.ok((await measureCpuMs(async () => visibleLine(line))) < 500)
})
