/** Runs the Python tests with Debian's Python. Some need packages of the template, which the machine may lack. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const python = '/usr/bin/python3'
const imports = spawnSync(python, ['-c', 'import IPython, tornado, matplotlib'])
const missing = imports.status !== 0 && 'the packages are missing'

test('the Python tests of the parts of the server pass', () => {
  runTests('events', 'kernel', 'kernel_output', 'kernel_requests', 'memory_guard')
})

test('the Python tests of the server and of charts pass', { skip: missing }, () => {
  runTests('charts', 'server')
})

function runTests(...names: readonly string[]): void {
  const args = ['-m', 'unittest', ...names.map((name) => `test_${name}`)]
  const options = { cwd: import.meta.dirname, encoding: 'utf8', timeout: 300_000 } as const
  const { status, stderr } = spawnSync(python, args, options)
  assert.equal(status, 0, stderr)
}
