import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { sandboxDir, sandboxesDir } from '../domain/instance.ts'
import type { Instance } from '../domain/instance.ts'
import type { SandboxRecord } from '../domain/sandbox.ts'

/** One folder a sandbox; its `sandbox.json` is written before anything else of it exists. */
export interface RecordStore {
  /** Makes the folder. False when the id is taken. */
  create(record: SandboxRecord): Promise<boolean>
  update(record: SandboxRecord): Promise<void>
  /** Every folder with its record; undefined where the record cannot be read and only the folder is left. */
  list(): Promise<{ sandboxId: string; record: SandboxRecord | undefined }[]>
  remove(sandboxId: string): Promise<void>
}

const Stored = z.object({
  sandboxId: z.string(),
  templateId: z.string(),
  cpuCount: z.number(),
  memoryMb: z.number(),
  diskSizeMb: z.number(),
  phase: z.enum(['creating', 'running']),
  slotNumber: z.number(),
  envd: z.string(),
  process: z.object({ pid: z.number(), started: z.string() }).exactOptional(),
})

export function createRecordStore(instance: Instance): RecordStore {
  const file = (sandboxId: string) => join(sandboxDir(instance, sandboxId), 'sandbox.json')
  // Whole or not at all, but not synced: no sandbox outlives what would lose the page cache.
  const write = async (record: SandboxRecord) => {
    const path = file(record.sandboxId)
    await writeFile(`${path}.next`, JSON.stringify(record), { mode: 0o600 })
    await rename(`${path}.next`, path)
  }
  return {
    async create(record) {
      await mkdir(sandboxesDir(instance), { recursive: true, mode: 0o700 })
      try {
        await mkdir(sandboxDir(instance, record.sandboxId), { mode: 0o700 })
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
        throw error
      }
      await write(record)
      return true
    },

    update: write,

    async list() {
      const names = await readdir(sandboxesDir(instance)).catch(() => [])
      return Promise.all(
        names.map(async (sandboxId) => ({
          sandboxId,
          record: await readFile(file(sandboxId), 'utf8')
            .then((text) => Stored.parse(JSON.parse(text)))
            .catch(() => undefined),
        })),
      )
    },

    remove: (sandboxId) => rm(sandboxDir(instance, sandboxId), { recursive: true, force: true }),
  }
}
