import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toMarks } from './timeline.ts'

test('events and denied connections are on one axis, in order, and hostile names are visible', () => {
  const at = (second: number) => new Date(second * 1000).toISOString()
  const common = { protocol: 'tcp', port: 443, count: 3, firstAt: at(1) } as const
  const marks = toMarks(
    [
      { at: at(1), kind: 'created' },
      { at: at(9), kind: 'ended', reason: 'was killed\u202e' },
      { at: at(3), kind: 'forked', sandboxID: 'icopy' },
    ],
    [
      { ...common, verdict: 'denied', name: 'evil\u202e.example', lastAt: at(5) },
      { ...common, verdict: 'allowed', name: 'good.example', lastAt: at(6) },
    ],
  )
  assert.deepEqual(
    marks.map(({ at: time, label }) => [time, label]),
    [
      [1, 'Created'],
      [3, 'Forked: icopy'],
      [5, 'Denied: evil<U+202E>.example (3 times)'],
      [9, 'Ended: was killed<U+202E>'],
    ],
  )
})

test('processes are marked at their start and end, and printed text is none of them', () => {
  const entry = (second: number, message: string, fields: Record<string, string>) => ({
    ...{ timestamp: new Date(second * 1000).toISOString(), level: 'info' as const, message },
    fields: { logger: 'process', ...fields },
  })
  const marks = toMarks(
    [],
    [],
    [
      entry(5, 'Process ended', { pid: '7', exitCode: '2' }),
      entry(1, 'Process started', { pid: '7', command: 'make old' }),
      entry(3, 'Process started', { pid: '7', command: 'make\u202e' }),
      entry(4, 'Process started', { pid: '7', stream: 'stdout' }),
      entry(4, 'Process started', { pid: '7', logger: 'user' }),
      entry(6, 'Process ended', { pid: '9', exitCode: '0' }),
      entry(7, 'Process ended', { pid: '10', exitCode: '-1' }),
    ],
  )
  assert.deepEqual(
    marks.map(({ at, label }) => [at, label]),
    [
      [1, 'Process started: make old'],
      [3, 'Process started: make<U+202E>'],
      [5, 'Process ended: make<U+202E> (exit code 2)'],
      [6, 'Process ended: process 9'],
      [7, 'Process ended: process 10 (killed by a signal)'],
    ],
  )
})
