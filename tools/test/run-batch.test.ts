import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runBatch } from './run-batch.ts'
import type { BatchOutcome } from './test-batch.ts'
import type { FileOutcome } from './test-file.ts'

const outcome = (path: string, ...failures: string[]): FileOutcome => ({
  ...{ path, failures },
  ...{ passed: 1, passedCases: 1, seconds: 1, output: '' },
})

/** Runs files of which `bad` ones fail alone. */
async function run(together: Partial<BatchOutcome>, bad: readonly string[] = []) {
  const alone: string[] = []
  const { outcomes, fault } = await runBatch(['a', 'b', 'c'], {
    runTogether: async () => ({ files: [], undecided: [], faults: [], output: '', ...together }),
    async runAlone(path) {
      alone.push(path)
      return bad.includes(path) ? outcome(path, 'bad') : outcome(path)
    },
  })
  return { alone, fault, failed: outcomes.filter((one) => one.failures.length > 0), outcomes }
}

test('files with an outcome do not run again', async () => {
  const files = [outcome('a'), outcome('b', 'failed'), outcome('c')]
  const { alone, fault, outcomes } = await run({ files })
  assert.deepEqual([alone, fault, outcomes], [[], undefined, files])
})

test('files after one that ended the process run alone', async () => {
  const files = [outcome('a', 'ended by SIGKILL')]
  const { alone, fault, failed } = await run({ files, undecided: ['b', 'c'] })
  assert.deepEqual([alone, fault, failed], [['b', 'c'], undefined, files])
})

test('a fault of the process counts, whether a file fails alone or not', async () => {
  const shared = { undecided: ['a', 'b', 'c'], faults: ['left processes running'] }
  const fault = { path: 'a in one process with b, c', failures: ['left processes running'] }
  const isolated = await run(shared)
  assert.deepEqual([isolated.fault, isolated.failed], [fault, []])
  const failing = await run(shared, ['b'])
  assert.deepEqual([failing.fault, failing.failed], [fault, [outcome('b', 'bad')]])
})
