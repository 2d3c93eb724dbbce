import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { runProgram } from '../sim/run-cli.ts'
import { setupCloud } from '../sim/setup.ts'

test('a key is created, listed without its secret, and deleted', async (t) => {
  const { run } = await setupCloud(t)
  const created = await run(['key', 'create', 'for ci'])
  assert.deepEqual([created.code, created.stdout], [0, 'e2b_new\n'])
  const listed = await run(['key', 'list'])
  const [head, row = ''] = listed.stdout.split('\n').map((line) => line.split(/\s{2,}/))
  assert.deepEqual(head, ['ID', 'NAME', 'KEY', 'CREATED', 'LAST USED'])
  assert.deepEqual(row.slice(1, 3), ['for ci', 'e2b_12...89ab'])
  const id = row[0] ?? ''
  assert.equal((await run(['key', 'delete', id])).stdout, `deleted ${id}\n`)
  const again = await run(['key', 'delete', id])
  assert.equal(again.code, 1)
  assert.match(again.stderr, /not found\nhint: `atoll key list`/)
})

test('show prints only the key of the local server', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-cli-'))
  t.after(() => rm(dataDir, { recursive: true }))
  const credentials = {
    teamId: 't',
    apiKey: 'e2b_local',
    accessToken: 'x',
    url: 'http://localhost',
  }
  await writeFile(join(dataDir, 'credentials.json'), JSON.stringify(credentials))
  const outcome = await runProgram(['key', 'show'], {
    ATOLL_DATA_DIR: dataDir,
    ATOLL_API_KEY: 'e2b_other',
  })
  assert.deepEqual(outcome, { code: 0, stdout: 'e2b_local\n', stderr: '' })
})
