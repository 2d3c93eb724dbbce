import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setupCloud } from '../sim/setup.ts'

test('a secret takes its value from stdin or a file, and never shows it', async (t) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-secret-'))
  const file = join(folder.path, 'value')
  await writeFile(file, 'from file\r\n')
  const { run, cloud } = await setupCloud(t)
  const created = await run(['secret', 'create', 'one'], 'from stdin\n')
  assert.deepEqual([created.code, created.stdout], [0, 'sec_one\n'])
  assert.equal(cloud.secrets.get('one')?.value, 'from stdin')
  const updated = await run(['secret', 'update', 'one', '--from-file', file])
  assert.equal(updated.stdout, 'updated one to version 2\n')
  assert.equal(cloud.secrets.get('one')?.value, 'from file')
  const listed = await run(['secret', 'list'])
  assert.match(listed.stdout, /^sec_one +one +2 /m)
  assert.ok(listed.stdout.includes(String.raw`by=a\x1b[2Jb`))
  const json = await run(['secret', 'list', '--json'])
  assert.equal(JSON.parse(json.stdout)[0].metadata.by, 'a\x1b[2Jb')
  assert.ok(!json.stdout.includes('\x1b'))
  assert.equal((await run(['secret', 'rm', 'one'])).stdout, 'deleted one\n')
  assert.match((await run(['secret', 'rm', 'one'])).stderr, /hint: `atoll secret list`/)
})

test('an empty value, a missing file and a large one are usage errors that store nothing', async (t) => {
  const { run, cloud } = await setupCloud(t)
  assert.equal((await run(['secret', 'create', 'x'], '\n')).code, 2)
  assert.equal((await run(['secret', 'create', 'x', '--from-file', '/nonexistent'])).code, 2)
  assert.equal((await run(['secret', 'create', 'x'], 'y'.repeat(70_000))).code, 2)
  assert.equal(cloud.secrets.size, 0)
})
