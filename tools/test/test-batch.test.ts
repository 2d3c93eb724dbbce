import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { runTestBatch } from './test-batch.ts'
import type { TestBatch } from './test-batch.ts'

/** Long enough for a busy machine to load a file and begin its tests. */
const hungAfterMs = 30_000

/** Runs a batch of files with this code, by name. */
async function runCode(
  t: TestContext,
  codes: Readonly<Record<string, string>>,
  options: Partial<TestBatch> = {},
) {
  const root = await mkdtemp(join(tmpdir(), 'atoll-runner-'))
  t.after(() => rm(root, { recursive: true }))
  const imports = `import { after, before, beforeEach, test } from 'node:test'\n`
  for (const [name, code] of Object.entries(codes))
    await writeFile(join(root, `${name}.mjs`), `${imports}${code}`)
  const paths = Object.keys(codes).map((name) => `${name}.mjs`)
  const limits = { limitMs: 120_000, testLimitMs: 120_000 }
  const { files, ...rest } = await runTestBatch({ root, paths, ...limits, ...options })
  const outcomes = files.map(({ path, passed, failures }) => [path, passed, failures])
  return { ...rest, outcomes }
}

const good = `test('good', () => {})`

test('files with failed tests have outcomes of their own, and the others may have failed after their tests', async (t) => {
  const { outcomes, undecided, faults, output } = await runCode(t, {
    first: `for (const row of [1, 2]) test('row ' + row, () => {}); test('other', () => {})`,
    second: `test('bad', () => { throw new Error('the reason') }); ${good}`,
    broken: `throw new Error('broken')`,
    empty: '',
    skipped: `test('left out', { skip: true }, () => {})`,
  })
  assert.deepEqual(outcomes, [
    ['second.mjs', 1, ['bad']],
    ['broken.mjs', 0, ['broken.mjs']],
    ['empty.mjs', 0, ['ran no test']],
  ])
  assert.deepEqual([undecided, faults], [['first.mjs', 'skipped.mjs'], []])
  assert.match(output, /✔ row 1 .*the reason.*broken/s)
})

test('files that pass have outcomes of their own, in order', async (t) => {
  const { outcomes, undecided, faults } = await runCode(t, {
    first: `for (const row of [1, 2]) test('row ' + row, () => {}); test('other', () => {})`,
    skipped: `test('left out', { skip: true }, () => {})`,
  })
  assert.deepEqual(outcomes, [
    ['first.mjs', 2, []],
    ['skipped.mjs', 0, []],
  ])
  assert.deepEqual([undecided, faults], [[], []])
})

test('an error after the tests of a file is not hidden by another file that fails', async (t) => {
  const { outcomes, undecided } = await runCode(t, {
    late: `test('good', () => { setTimeout(() => { throw new Error('late') }, 50) })`,
    failing: `import { setTimeout as sleep } from 'node:timers/promises'
      test('bad', async () => { await sleep(200); throw new Error('bad') })`,
  })
  assert.deepEqual(outcomes, [['failing.mjs', 0, ['bad']]])
  assert.deepEqual(undecided, ['late.mjs'])
})

test('hooks apply to the tests of their own file, and end before the next file', async (t) => {
  const { outcomes, faults } = await runCode(t, {
    hooked: `import { setTimeout as sleep } from 'node:timers/promises'
       const state = (globalThis.state = { each: 0, isOpen: false })
       before(() => (state.isOpen = true))
       beforeEach(() => (state.each += 1))
       after(async () => { await sleep(50); state.isOpen = false })
       test('open', () => { if (!state.isOpen) throw new Error('not open') })`,
    other: `import assert from 'node:assert'
       test('closed', () => assert.deepEqual(globalThis.state, { each: 1, isOpen: false }))`,
  })
  assert.deepEqual(outcomes, [
    ['hooked.mjs', 1, []],
    ['other.mjs', 1, []],
  ])
  assert.deepEqual(faults, [])
})

describe('a batch that ends early', { concurrency: true }, () => {
  test('names the hung file, and leaves the others undecided', async (t) => {
    const { outcomes, undecided, faults } = await runCode(
      t,
      {
        first: good,
        hung: `test('hung', async () => { await new Promise(setImmediate); for (;;); }); ${good}`,
        later: good,
      },
      { limitMs: hungAfterMs },
    )
    assert.deepEqual(outcomes, [
      ['hung.mjs', 0, ['killed after its limit of 30 s; not ended: "hung", "good"']],
    ])
    assert.deepEqual([undecided, faults], [['first.mjs', 'later.mjs'], []])
  })

  test('names the file that ended the process', async (t) => {
    const { outcomes, undecided, faults } = await runCode(t, {
      first: `import { setTimeout as sleep } from 'node:timers/promises'; ${good}; after(() => sleep(500))`,
      ending: `test('end', () => process.kill(process.pid, 'SIGKILL'))`,
      later: good,
    })
    assert.deepEqual(outcomes.at(-1), ['ending.mjs', 0, ['ended by SIGKILL']])
    assert.equal(undecided.at(-1), 'later.mjs')
    assert.deepEqual(faults, [])
  })

  test('has a fault of no file if a listener keeps it alive', async (t) => {
    const { outcomes, undecided, faults } = await runCode(
      t,
      {
        leaky: `import { createServer } from 'node:net'
          test('leaky', () => { createServer().listen(0, '127.0.0.1') })`,
        later: good,
      },
      { limitMs: hungAfterMs },
    )
    assert.deepEqual([outcomes, undecided], [[], ['leaky.mjs', 'later.mjs']])
    assert.deepEqual(faults, ['all tests had ended, but the process did not'])
  })

  test('has a fault of no file if a process is left', async (t) => {
    const { outcomes, undecided, faults } = await runCode(t, {
      leaving: `import { spawn } from 'node:child_process'
        test('leaving', () => { spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }).unref() })`,
      later: good,
    })
    assert.deepEqual([outcomes, undecided], [[], ['leaving.mjs', 'later.mjs']])
    assert.match(faults.join(), /^left processes running, now killed: sleep \(pid \d+\)$/)
  })
})

test('a file that takes its time does not use up the limit of the others', async (t) => {
  const slow = `import { setTimeout as sleep } from 'node:timers/promises'
    test('slow', () => sleep(31_000))`
  const { outcomes, undecided } = await runCode(
    t,
    { first: slow, second: slow },
    { limitMs: 60_000 },
  )
  assert.deepEqual(outcomes, [
    ['first.mjs', 1, []],
    ['second.mjs', 1, []],
  ])
  assert.deepEqual(undecided, [])
})

test('the end of the run ends the batch', async (t) => {
  const { outcomes, undecided } = await runCode(
    t,
    { first: good, second: good },
    { signal: AbortSignal.abort() },
  )
  const failures = ['ended because the run was ended']
  assert.deepEqual(outcomes, [
    ['first.mjs', 0, failures],
    ['second.mjs', 0, failures],
  ])
  assert.deepEqual(undecided, [])
})
