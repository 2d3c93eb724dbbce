import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repeatFailedFiles } from './repeat-failed-files.ts'
import type { FileOutcome } from './test-file.ts'

test('a file that fails once passes, and is reported with its first failures', async () => {
  const ran: string[] = []
  const { outcomes, repeated } = await repeatFailedFiles(
    [outcome('good'), outcome('unlucky', 'a race')],
    async (path) => {
      ran.push(path)
      return outcome(path)
    },
  )
  assert.deepEqual(ran, ['unlucky'])
  assert.deepEqual(repeated, [{ path: 'unlucky', failures: ['a race'] }])
  assert.deepEqual(outcomes, [outcome('good'), outcome('unlucky')])
})

test('a file that fails twice has failed', async () => {
  const { outcomes, repeated } = await repeatFailedFiles([outcome('bad', 'first')], async (path) =>
    outcome(path, 'second'),
  )
  assert.deepEqual(repeated, [])
  assert.deepEqual(outcomes, [outcome('bad', 'second')])
})

test('many failed files are not run again', async () => {
  const failed = Array.from({ length: 6 }, (_, index) => outcome(`file ${index}`, 'broken'))
  const { outcomes } = await repeatFailedFiles(failed, () => assert.fail('no second run expected'))
  assert.deepEqual(outcomes, failed)
})

function outcome(path: string, ...failures: string[]): FileOutcome {
  return { path, passed: 1, passedCases: 1, failures, seconds: 1, output: '' }
}
