import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureCpuMs } from './cpu-time.ts'
import { diffText, formatHunks } from './text-diff.ts'
import type { DiffHunk } from './text-diff.ts'

test('prints hunks as diff -u does', () => {
  const before = 'a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n'
  const after = 'a\nb\nC\nd\ne\nf\ng\nh\ni\nj\nnew\nk\n'
  assert.deepEqual(formatHunks(diffText(before, after)), [
    '@@ -1,6 +1,6 @@',
    ...[' a', ' b', '-c', '+C', ' d', ' e', ' f'],
    '@@ -8,4 +8,5 @@',
    ...[' h', ' i', ' j', '+new', ' k'],
  ])
})

test('a new file, an emptied file and equal texts', () => {
  assert.deepEqual(formatHunks(diffText('', 'a\n')), ['@@ -0,0 +1,1 @@', '+a'])
  assert.deepEqual(formatHunks(diffText('a\n', '')), ['@@ -1,1 +0,0 @@', '-a'])
  assert.deepEqual(diffText('a\n', 'a\n'), [])
})

test('a missing line break at the end is a difference', () => {
  assert.deepEqual(formatHunks(diffText('a\n', 'a')), [
    '@@ -1,1 +1,1 @@',
    '-a',
    '+a\n\\ No newline at end of file',
  ])
})

test('the hunks turn one text into the other, for random texts', () => {
  let seed = 7
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  const randomText = () =>
    Array.from({ length: random(40) }, () => `${'abc'.charAt(random(3))}\n`).join('')
  for (let round = 0; round < 300; round += 1) {
    const [before, after] = [randomText(), randomText()]
    assert.equal(apply(before, diffText(before, after)), after, `${before} to ${after}`)
  }
})

/** Fails if a line to keep or to remove is not there. */
function apply(before: string, hunks: readonly DiffHunk[]): string {
  const lines = before.split('\n').slice(0, -1)
  const result: string[] = []
  let next = 0
  for (const hunk of hunks) {
    result.push(...lines.slice(next, hunk.beforeStart - 1))
    assert.equal(result.length, hunk.afterStart - 1)
    next = hunk.beforeStart - 1
    for (const { kind, text } of hunk.lines) {
      if (kind !== 'added') assert.equal(lines[next++], text)
      if (kind !== 'removed') result.push(text)
    }
    assert.equal(next, hunk.beforeStart - 1 + hunk.beforeCount)
  }
  return [...result, ...lines.slice(next)].map((text) => `${text}\n`).join('')
}

test('large texts that have nothing in common cost little', async () => {
  const text = (word: string) => Array.from({ length: 100_000 }, (_, n) => `${word}${n}\n`).join('')
  const costMs = await measureCpuMs(() => {
    const [hunk, ...others] = diffText(text('a'), text('b'))
    assert.equal(others.length, 0)
    assert.equal(hunk?.lines.length, 200_000)
  })
  assert.ok(costMs < 5000, `took ${costMs} ms`)
})
