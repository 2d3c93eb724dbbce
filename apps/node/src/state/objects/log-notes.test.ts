import assert from 'node:assert/strict'
import { mkdtempDisposable, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openLogNotes } from './log-notes.ts'

test('notes are there after a restart, the newest of each log', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-notes-'))
  const notes = await openLogNotes(folder.path)
  await notes.set('i1', { writtenAtMs: 5, lastAt: 4 })
  await notes.set('i1', { writtenAtMs: 10, lastAt: 8 })
  await notes.set('i2', { writtenAtMs: 7, lastAt: 6 })
  await notes.set('i2', { writtenAtMs: 7, lastAt: 6 })
  assert.deepEqual((await readdir(folder.path)).toSorted(), ['i1.10.8', 'i2.7.6'])
  // A crash between the new note and the removal of the old one.
  await writeFile(join(folder.path, 'i1.9.8'), '')
  const reopened = await openLogNotes(folder.path)
  assert.deepEqual(reopened.find('i1'), { writtenAtMs: 10, lastAt: 8 })
  assert.deepEqual(reopened.find('i2'), { writtenAtMs: 7, lastAt: 6 })
  assert.equal(reopened.find('i3'), undefined)
  await reopened.keepOnly(new Set(['i2']))
  assert.deepEqual([reopened.find('i1'), await readdir(folder.path)], [undefined, ['i2.7.6']])
})
