import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runProgram } from '../sim/run-cli.ts'

test('the exit code is 1 if a requirement is missing', async () => {
  const env = { PATH: process.env['PATH'] ?? '' }
  const { code, stdout } = await runProgram(['doctor', '--json'], env)
  const findings: { readonly name: string; readonly state: string }[] = JSON.parse(stdout)
  const isMissing = findings.some(({ state }) => state === 'missing')
  assert.ok(findings.some(({ name }) => name === 'kernel'))
  assert.equal(code, isMissing ? 1 : 0)
})
