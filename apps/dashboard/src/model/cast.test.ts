import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCast } from './cast.ts'

test('a recording is read, long silences are shortened, and broken lines are skipped', () => {
  const { size, events, duration } = parseCast(
    [
      '{"version":2,"width":100,"height":30,"timestamp":1}',
      '[0.5,"o","one"]',
      '[100,"o","two"]',
      '[100.25,"r","120x40"]',
      '[100.5,"i","typed"]',
      '[101,"r","9999999x1"]',
      '[102,"o"',
    ].join('\n'),
  )
  assert.deepEqual(size, { cols: 100, rows: 30 })
  assert.deepEqual(events, [
    { at: 0.5, output: 'one' },
    { at: 2.5, output: 'two' },
    { at: 2.75, resize: { cols: 120, rows: 40 } },
  ])
  assert.equal(duration, 2.75)
})

for (const text of [
  '',
  'null',
  '[]\n{}\n"x"\n[1]\n',
  '{"width":-1,"height":1e9}\n[1e999,"o","x"]',
]) {
  test(`a recording of ${JSON.stringify(text)} is empty`, () => {
    assert.deepEqual(parseCast(text), { size: { cols: 80, rows: 24 }, events: [], duration: 0 })
  })
}

test('time never runs backwards', () => {
  const { events } = parseCast('{}\n[5,"o","a"]\n[3,"o","b"]\n[6,"o","c"]')
  assert.deepEqual(
    events.map(({ at }) => at),
    [2, 2, 3],
  )
})
