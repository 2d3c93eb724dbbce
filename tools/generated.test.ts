import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { differences } from './generated.ts'

test('changed, added and removed files are named, equal ones are not', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-differences-'))
  try {
    const [a, b] = [join(dir, 'a'), join(dir, 'b')]
    await Promise.all([a, b].map((folder) => mkdir(join(folder, 'deep'), { recursive: true })))
    for (const folder of [a, b]) await writeFile(join(folder, 'deep/same.js'), 'same')
    await writeFile(join(a, 'changed.js'), 'one')
    await writeFile(join(b, 'changed.js'), 'two')
    await writeFile(join(a, 'added.js'), '')
    await writeFile(join(b, 'removed.js'), '')
    const named = await differences(a, b)
    assert.deepEqual(new Set(named), new Set(['changed.js', 'added.js', 'removed.js']))
    await assert.rejects(differences(join(dir, 'nowhere'), join(dir, 'neither')), /no files/)
  } finally {
    await rm(dir, { recursive: true })
  }
})
