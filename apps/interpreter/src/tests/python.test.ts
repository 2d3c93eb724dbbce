/** Runs the Python tests with Debian's Python, if it has the packages of the template. */
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import assert from 'node:assert/strict'

const python = '/usr/bin/python3'
const imports = spawnSync(python, ['-c', 'import IPython, tornado, matplotlib'])

test('the Python tests pass', { skip: imports.status !== 0 && 'the packages are missing' }, () => {
  const args = ['-m', 'unittest', 'discover', '--start-directory', import.meta.dirname]
  const { status, stderr } = spawnSync(python, args, { encoding: 'utf8', timeout: 180_000 })
  assert.equal(status, 0, stderr)
})
