import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { runTestFile } from './test-file.ts'
import type { TestFile } from './test-file.ts'

/** Long enough for a busy machine to load a file and begin its tests. */
const hungAfterMs = 20_000

/** Runs a test file with this code. */
async function runCode(t: TestContext, code: string, options: Partial<TestFile> = {}) {
  const root = await mkdtemp(join(tmpdir(), 'atoll-runner-'))
  t.after(() => rm(root, { recursive: true }))
  await writeFile(join(root, 'x.test.mjs'), `import { describe, test } from 'node:test'\n${code}`)
  return runTestFile({
    root,
    path: 'x.test.mjs',
    limitMs: 120_000,
    testLimitMs: 120_000,
    ...options,
  })
}

test('the rows of a table count as cases of one test', async (t) => {
  const { passed, passedCases, failures } = await runCode(
    t,
    `for (const row of [1, 2, 3]) test('row ' + row, () => {})
     for (const row of [1, 2]) test('other ' + row, () => { if (row === 2) throw new Error() })`,
  )
  assert.deepEqual([passed, passedCases, failures], [1, 4, ['other 2']])
})

test('a file that ends its process with status 0 before its last test has failed', async (t) => {
  const { passed, failures } = await runCode(
    t,
    `test('good', () => {})
     test('early', async () => {
       await new Promise((resolve) => setTimeout(resolve, 500))
       process.exit(0)
     })
     test('later', () => { throw new Error() })`,
  )
  assert.equal(passed, 1)
  assert.deepEqual(failures, ['ended with status 0 before the end of "early", "later"'])
})

test('tests that pass, fail and are skipped are counted, and suites are not', async (t) => {
  const { passed, failures, output } = await runCode(
    t,
    `test('good', () => {})
     test('bad', () => { throw new Error('the reason') })
     test('left out', { skip: true }, () => {})
     test('whole', async (t) => {
       await t.test('good part', () => {})
       await t.test('bad part', () => { throw new Error() })
     })
     describe('suite', () => { test('good case', () => {}) })`,
  )
  assert.equal(passed, 3)
  assert.deepEqual(failures, ['bad', 'bad part'])
  assert.match(output, /✔ good .*the reason/s)
  assert.doesNotMatch(output, /ℹ (pass|fail|tests)/)
})

describe('past its limit', { concurrency: true }, () => {
  test('a hung test is named, and what it started is killed', async (t) => {
    const { passed, failures, output } = await runCode(
      t,
      `import { spawn } from 'node:child_process'
       test('good', () => {})
       test('hung', async () => {
         const child = spawn('sleep', ['1000'], { detached: true, stdio: 'inherit' })
         console.log('started ' + child.pid)
         await new Promise(() => {})
       })
       test('later', () => {})`,
      { limitMs: hungAfterMs },
    )
    assert.equal(passed, 1)
    assert.match(failures[0] ?? '', /^killed after its limit of 20 s; not ended: "hung", "later"$/)
    const pid = /started (\d+)/.exec(output)?.[1]
    assert.deepEqual(failures.slice(1), [`left processes running, now killed: sleep (pid ${pid})`])
    await waitFor('its end', () => isGone(Number(pid)))
  })

  test('a file whose tests have ended does not hold the run up by an open listener', async (t) => {
    const { passed, failures } = await runCode(
      t,
      `import { createServer } from 'node:net'
       test('leaky', () => { createServer().listen(0, '127.0.0.1') })`,
      { limitMs: hungAfterMs },
    )
    assert.equal(passed, 1)
    assert.match(failures.join(), /^killed after its limit of 20 s: all tests had ended/)
  })

  test('a file that never yields is killed', async (t) => {
    const { failures } = await runCode(
      t,
      `test('good', () => {})
       test('busy', async () => { await new Promise(setImmediate); for (;;); })`,
      { limitMs: hungAfterMs },
    )
    assert.match(failures.join(), /^killed after its limit of 20 s; not ended: "busy"$/)
  })
})

test('a test past its own limit fails alone', async (t) => {
  const { passed, failures } = await runCode(
    t,
    `test('slow', () => new Promise((resolve) => setTimeout(resolve, 600_000).unref()))
     const timer = setTimeout(() => {}, 600_000)
     test('next', () => clearTimeout(timer))`,
    { testLimitMs: 1000 },
  )
  assert.deepEqual([passed, failures], [1, ['slow']])
})

test('a file that cannot be loaded, or ends itself, or has no test has failed', async (t) => {
  const failuresOf = async (code: string) => (await runCode(t, code)).failures
  assert.deepEqual(await failuresOf(`throw new Error('broken')`), ['ended with status 1'])
  assert.deepEqual(await failuresOf(`process.exit(3)`), ['ended with status 3'])
  assert.deepEqual(await failuresOf(`process.kill(process.pid, 'SIGKILL')`), ['ended by SIGKILL'])
  assert.deepEqual(await failuresOf(''), ['ran no test'])
})

test('the end of the run ends the file', async (t) => {
  const { failures } = await runCode(
    t,
    `test('long', () => new Promise((resolve) => setTimeout(resolve, 600_000)))`,
    {
      signal: AbortSignal.abort(),
    },
  )
  assert.deepEqual(failures, ['ended because the run was ended'])
})

/** A process that was killed stays as a zombie until its new parent has noticed. */
async function isGone(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  return stat === '' || stat.includes(') Z ')
}
