import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createProgressView } from './progress.ts'

function setup(isTTY: boolean) {
  let written = ''
  const screen = { isTTY, columns: 40, write: (text: string) => (written += text) }
  return { view: createProgressView(screen), written: () => written }
}

test('a terminal shows one line that is overwritten and never wraps', () => {
  const { view, written } = setup(true)
  view.report('installing Debian packages, many of them', 0.5)
  view.report('x', 7)
  view.clear()
  view.clear()
  assert.equal(
    written(),
    `\r\x1b[K[${'#'.repeat(12)}${'-'.repeat(12)}] 50 % install\r\x1b[K[${'#'.repeat(24)}] 100 % x\r\x1b[K`,
  )
})

test('other outputs get one line per label and per tenth', () => {
  const { view, written } = setup(false)
  for (const fraction of [0, 0.01, 0.02, 0.11, 0.12]) view.report('a', fraction)
  view.report('b', 0.12)
  view.clear()
  assert.equal(written(), '0 % a\n11 % a\n12 % b\n')
})
