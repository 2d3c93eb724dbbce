import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { earlierNameOfStore } from '@atoll/objects/store-name'
import { openMarks } from './marks.ts'
import { openNotesFolder } from './notes-folder.ts'

const place = { region: 'us-east-1', bucket: 'atoll', prefix: '' }
const [usual, other] = ['https://s3.example.com', 'https://S3.example.com/']

test('another spelling of the endpoint has the same marks', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-notes-'))
  t.after(() => rm(dir, { recursive: true }))
  const open = async (endpoint: string) =>
    openMarks(join(await openNotesFolder(dir, { ...place, endpoint }), 'durable'))
  await (await open(usual)).add('snapshots', 's1')
  assert.equal((await open(other)).has('snapshots', 's1'), true)
  assert.equal((await open('https://other.example.com')).has('snapshots', 's1'), false)
})

test('the notes of an earlier release are taken over, and replace no newer ones', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-notes-'))
  t.after(() => rm(dir, { recursive: true }))
  const earlier = join(dir, earlierNameOfStore({ ...place, endpoint: other }))
  await mkdir(earlier)
  await writeFile(join(earlier, 'note'), '')
  const folder = await openNotesFolder(dir, { ...place, endpoint: other })
  assert.deepEqual([await readdir(folder), (await readdir(dir)).length], [['note'], 1])
  await mkdir(earlier)
  await openNotesFolder(dir, { ...place, endpoint: other })
  assert.deepEqual([await readdir(folder), (await readdir(dir)).length], [['note'], 2])
})
