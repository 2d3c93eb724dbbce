import assert from 'node:assert/strict'
import { test } from 'node:test'
import { summarize } from './measure.ts'
import { renderTable, toJson } from './report.ts'

const report = {
  scenario: 'example',
  description: 'An example',
  rows: [
    { name: 'raw', summary: summarize([10, 20, 30]) },
    { name: 'the real thing', summary: summarize([40, 50, 1234.56]), baseline: 'raw' },
  ],
}

test('the table is aligned and shows a ratio for rows with a baseline', () => {
  assert.equal(
    renderTable(report),
    [
      'An example',
      '',
      '                p50 ms  p99 ms  min ms  ratio',
      'raw               20.0    30.0    10.0',
      'the real thing    50.0  1234.6    40.0  2.50x',
      '',
    ].join('\n'),
  )
})

test('the header shows a unit other than ms', () => {
  assert.match(renderTable({ ...report, unit: 'MiB' }), /p50 MiB {2}p99 MiB {2}min MiB {2}ratio/)
})

test('the JSON includes ratios', () => {
  const { rows } = Object(JSON.parse(JSON.stringify(toJson(report))))
  assert.deepEqual([rows[0].ratio, rows[1].ratio, rows[1].summary.p99], [undefined, 2.5, 1234.56])
})

test('a missing baseline is an error', () => {
  const [, lonely] = report.rows
  assert.throws(
    () => toJson({ ...report, rows: lonely ? [lonely] : [] }),
    /compared with a missing row: raw/,
  )
})
