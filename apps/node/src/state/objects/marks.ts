import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '@atoll/kit/atomic-file'
import { listNames } from '../record-file.ts'

/**
 * Notes which contents of this node are in the object store. A note is made only after the store has the content, and is on
 * disk then: an eviction trusts it. The kind `evicted-snapshots` notes which of the snapshots this node has no files of.
 */
export interface Marks {
  has(kind: MarkKind, name: string): boolean
  add(kind: MarkKind, name: string): Promise<void>
  removeWhere(kind: MarkKind, isUnwanted: (name: string) => boolean): Promise<void>
  list(kind: MarkKind): readonly string[]
}

const markKinds = [
  'envd',
  'layers',
  'templates',
  'snapshots',
  'sandboxes',
  'evicted-snapshots',
  'build-files',
] as const

export type MarkKind = (typeof markKinds)[number]

export async function openMarks(dir: string): Promise<Marks> {
  const known = new Map<MarkKind, Set<string>>()
  for (const kind of markKinds) {
    await mkdir(join(dir, kind), { recursive: true, mode: 0o700 })
    known.set(kind, new Set(await listNames(join(dir, kind))))
  }
  const of = (kind: MarkKind) => known.get(kind) ?? new Set<string>()
  return {
    has: (kind, name) => of(kind).has(name),
    async add(kind, name) {
      if (of(kind).has(name)) return
      await writeFile(join(dir, kind, name), '', { mode: 0o600, flush: true })
      await syncFolder(join(dir, kind))
      of(kind).add(name)
    },
    async removeWhere(kind, isUnwanted) {
      for (const name of of(kind)) {
        if (!isUnwanted(name)) continue
        of(kind).delete(name)
        await rm(join(dir, kind, name), { force: true })
      }
    },
    list: (kind) => [...of(kind)],
  }
}
