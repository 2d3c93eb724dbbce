import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstBaseline, checkRange, cpuPercent, stepOf, windowOf } from './metrics.ts'

const hour = 3600
const day = 24 * hour

for (const [seconds, step] of [
  [0, 5],
  [hour - 1, 5],
  [hour, 30],
  [6 * hour - 1, 30],
  [6 * hour, 60],
  [12 * hour - 1, 60],
  [12 * hour, 120],
  [day - 1, 120],
  [day, 300],
  [7 * day - 1, 300],
  [7 * day, 900],
  [300 * 365 * day, 900],
] as const) {
  test(`a range of ${seconds} seconds comes in steps of ${step}`, () => {
    assert.equal(stepOf({ start: 1000, end: 1000 + seconds }), step)
  })
}

const endOf2299 = 10_413_791_999

for (const [start, end, message] of [
  [0, 0, undefined],
  [5, 5, undefined],
  [0, endOf2299, undefined],
  [endOf2299, endOf2299, undefined],
  [6, 5, /start must not be after end/],
  [0, endOf2299 + 1, /end must not be after the year 2299/],
  [endOf2299 + 1, 0, /start must not be after the year 2299/],
] as const) {
  test(`from ${start} to ${end} is ${message ? 'refused' : 'a range'}`, () => {
    if (message) assert.throws(() => checkRange({ start, end }), { kind: 'invalid', message })
    else checkRange({ start, end })
  })
}

test('a moment belongs to the 5 seconds that began last', () => {
  const windows = ['00:00.000', '00:04.999', '00:05.000', '00:09.999'].map((time) =>
    windowOf(new Date(`1970-01-01T00:${time}Z`)),
  )
  assert.deepEqual(windows, [0, 0, 5, 5])
})

function reading(cpuUsedNs: number, readAtNs: number, cpuCount = 2) {
  return {
    sandboxId: 'i1',
    cpuCount,
    cpuUsedNs,
    readAtNs,
    ageNs: 0,
    memoryUsedBytes: 0,
    memoryCacheBytes: 0,
    memoryTotalBytes: 0,
    diskUsedBytes: 0,
    diskTotalBytes: 0,
  }
}

for (const [what, cpuNs, passedNs, percent] of [
  ['one of two CPUs', 5e9, 5e9, 50],
  ['a third of one', 1e9, 3e9, 16.67],
  ['nothing', 0, 5e9, 0],
  ['a little more than there is', 10.1e9, 5e9, 100],
  ['a counter that went back', -1, 5e9, 0],
  ['two readings of one moment', 5, 0, 0],
] as const) {
  test(`CPU use: ${what} is ${percent} %`, () => {
    assert.equal(cpuPercent(reading(1e9, 7e9), reading(1e9 + cpuNs, 7e9 + passedNs)), percent)
  })
}

test('a new sandbox is compared with its start, an old one with nothing', () => {
  const first = { ...reading(5e9, 100e9), ageNs: 10e9 }
  assert.deepEqual(firstBaseline(first), { cpuUsedNs: 0, readAtNs: 90e9 })
  assert.equal(cpuPercent(firstBaseline(first) ?? assert.fail(), first), 25)
  assert.equal(firstBaseline({ ...first, ageNs: 10e9 + 1 }), undefined)
})
