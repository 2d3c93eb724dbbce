import assert from 'node:assert/strict'
import { appendFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { runProgram, startProgram } from '../sim/run-cli.ts'

async function setup(t: TestContext) {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-logs-'))
  t.after(() => rm(dataDir, { recursive: true }))
  await mkdir(join(dataDir, 'logs'))
  return { env: { ATOLL_DATA_DIR: dataDir }, path: join(dataDir, 'logs/server.log') }
}

function line(msg: string, more: object = {}): string {
  return `${JSON.stringify({ level: 30, time: 1_700_000_000_000, ...more, msg })}\n`
}

test('the newest lines are printed, across the file that was renamed', async (t) => {
  const { env, path } = await setup(t)
  await writeFile(`${path}.1`, line('first') + line('second'))
  await writeFile(path, line('third', { event: 'x.y', err: { message: 'no\u001b[2J' }, a: 'b c' }))
  const { code, stdout } = await runProgram(['logs', '-n', '2'], env)
  assert.deepEqual(
    [code, stdout],
    [
      0,
      '2023-11-14T22:13:20.000Z info  second\n' +
        '2023-11-14T22:13:20.000Z info  x.y third [a="b c"] error: no\\x1b[2J\n',
    ],
  )
  const json = await runProgram(['logs', '--json'], env)
  const messages = json.stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text).msg)
  assert.deepEqual(messages, ['first', 'second', 'third'])
})

test('following continues in the new file when the log is renamed', async (t) => {
  const { env, path } = await setup(t)
  await writeFile(path, line('one'))
  const child = startProgram(['logs', '--follow'], env)
  t.after(() => child.kill('SIGKILL'))
  let seen = ''
  child.stdout.on('data', (chunk) => (seen += String(chunk)))
  await waitFor('the first line', () => seen.includes('one'))
  await appendFile(path, line('two').slice(0, 10))
  await appendFile(path, line('two').slice(10))
  await appendFile(path, line('three'))
  await rename(path, `${path}.1`)
  await writeFile(path, line('four'))
  await waitFor('all lines', () => /one\n.*two\n.*three\n.*four\n$/s.test(seen))
})

test('a missing log is an error that says what to do', async (t) => {
  const { env } = await setup(t)
  const { code, stderr } = await runProgram(['logs'], env)
  assert.equal(code, 1)
  assert.match(stderr, /There is no .*server\.log\. Start the server/)
})
