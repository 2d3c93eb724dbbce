import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareWithDebt, topFolder, updateDebt } from './debt.ts'
import type { Rule } from './debt.ts'

function rule(counts: Record<string, number>, tolerated = 0): Rule {
  const findings = Object.entries(counts).flatMap(([folder, count]) =>
    Array.from({ length: count }, (_, index) => ({
      path: `${folder}/file.ts`,
      line: index + 1,
      message: 'is long',
    })),
  )
  return { name: 'long file', findings, groupOf: topFolder, toleratedIn: () => tolerated }
}

test('as many findings as recorded pass', () => {
  const comparison = compareWithDebt([rule({ bench: 2 })], { 'long file': { bench: 2 } })
  assert.deepEqual(comparison, { failures: [], notes: [] })
})

test('one finding more than recorded fails and is shown', () => {
  const { failures } = compareWithDebt([rule({ bench: 3 })], { 'long file': { bench: 2 } })
  assert.match(
    failures.join(),
    /^bench: 3 × long file, 2 allowed:\n {2}bench\/file\.ts:1 {2}is long/,
  )
})

test('a folder without an entry may have no finding', () => {
  assert.equal(compareWithDebt([rule({ 'apps/api': 1 })], {}).failures.length, 1)
})

test('fewer findings than recorded pass with a note', () => {
  const debt = { 'long file': { bench: 2, tools: 1 } }
  const { failures, notes } = compareWithDebt([rule({ bench: 1 })], debt)
  assert.deepEqual(failures, [])
  assert.deepEqual(notes, ['bench: 1 × long file, 2 allowed', 'tools: 0 × long file, 1 allowed'])
})

test('tolerated findings need no entry', () => {
  assert.deepEqual(compareWithDebt([rule({ bench: 3 }, 3)], {}), { failures: [], notes: [] })
  assert.equal(compareWithDebt([rule({ bench: 4 }, 3)], {}).failures.length, 1)
  assert.deepEqual(updateDebt([rule({ bench: 3 }, 3)], { 'long file': { bench: 9 } }, false), {
    'long file': {},
  })
})

test('recorded numbers fall, and rise only on request', () => {
  const debt = { 'long file': { bench: 2, tools: 2 } }
  const found = [rule({ bench: 1, tools: 3, 'apps/api': 1 })]
  assert.deepEqual(updateDebt(found, debt, false), { 'long file': { bench: 1, tools: 2 } })
  assert.deepEqual(updateDebt(found, debt, true), {
    'long file': { 'apps/api': 1, bench: 1, tools: 3 },
  })
})
