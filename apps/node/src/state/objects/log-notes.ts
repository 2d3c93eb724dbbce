import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LogNote, LogNotes } from '../../domain/sandboxes/log.ts'
import { listNames } from '../record-file.ts'

const namePattern = /^([a-z0-9]+)\.(\d+)\.(\d+)$/

/** Opens the notes in `dir`: an empty file for each log, whose name is the note. */
export async function openLogNotes(dir: string): Promise<LogNotes> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const notes = new Map<string, LogNote>()
  const remove = (sandboxId: string, note: LogNote) =>
    rm(join(dir, nameOf(sandboxId, note)), { force: true })

  for (const name of await listNames(dir)) {
    const [, sandboxId, writtenAt, last] = namePattern.exec(name) ?? []
    if (sandboxId === undefined) continue
    const note = { writtenAtMs: Number(writtenAt), lastAt: Number(last) }
    const other = notes.get(sandboxId)
    // A crash interrupted the replacement of a note.
    const isNewer = !other || other.writtenAtMs < note.writtenAtMs
    if (isNewer) notes.set(sandboxId, note)
    if (other) await remove(sandboxId, isNewer ? other : note)
  }

  return {
    find: (sandboxId) => notes.get(sandboxId),
    async set(sandboxId, note) {
      const earlier = notes.get(sandboxId)
      await writeFile(join(dir, nameOf(sandboxId, note)), '', { mode: 0o600 })
      notes.set(sandboxId, note)
      const isReplaced = earlier && nameOf(sandboxId, earlier) !== nameOf(sandboxId, note)
      if (isReplaced) await remove(sandboxId, earlier)
    },
    async keepOnly(sandboxIds) {
      for (const [sandboxId, note] of notes) {
        if (sandboxIds.has(sandboxId)) continue
        notes.delete(sandboxId)
        await remove(sandboxId, note)
      }
    },
  }
}

function nameOf(sandboxId: string, { writtenAtMs, lastAt }: LogNote): string {
  return `${sandboxId}.${writtenAtMs}.${lastAt}`
}
