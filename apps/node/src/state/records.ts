import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { z } from 'zod'
import { cellDir, cellsDir } from '../domain/instance.ts'
import type { Instance } from '../domain/instance.ts'
import { phases } from '../domain/cell.ts'
import type { CellRecord } from '../domain/cell.ts'
import { listNames, readStored } from './stored.ts'

/** One folder a cell; its `cell.json` is written before anything else of it exists. */
export interface RecordStore {
  /** Makes the folder. */
  create(record: CellRecord): Promise<void>
  update(record: CellRecord): Promise<void>
  /** Every folder with its record; undefined where the record cannot be read and only the folder is left. */
  list(): Promise<{ cellId: string; record: CellRecord | undefined }[]>
  remove(cellId: string): Promise<void>
}

export const storedSetup = z.object({
  user: z.string(),
  workdir: z.string().exactOptional(),
  envVars: z.record(z.string(), z.string()),
  startCommand: z.string().exactOptional(),
  readyCommand: z.string().exactOptional(),
})

/** The parts that snapshots have as well. */
export const storedMakings = {
  templateId: z.string(),
  cpuCount: z.number(),
  memoryMb: z.number(),
  diskSizeMb: z.number(),
  runtime: z.enum(['gvisor', 'runc']),
  layer: z.string(),
  envd: z.string(),
  initToken: z.string(),
  setup: storedSetup.exactOptional(),
  memory: z.string().exactOptional(),
}

export const storedAuthority = z.object({ certificate: z.string(), key: z.string() })

const StoredRules = z.object({
  allowOut: z.array(z.string()),
  denyOut: z.array(z.string()),
  allowNames: z.array(z.string()).exactOptional(),
  proxy: z
    .object({
      address: z.string(),
      username: z.string().exactOptional(),
      password: z.string().exactOptional(),
    })
    .exactOptional(),
  transforms: z
    .object({
      domains: z.array(
        z.object({ pattern: z.string(), headers: z.record(z.string(), z.string()) }),
      ),
      authority: storedAuthority.exactOptional(),
    })
    .exactOptional(),
})

const Stored = z.object({
  ...storedMakings,
  cellId: z.string(),
  phase: z.enum(phases),
  disk: z.string(),
  slotNumber: z.number().exactOptional(),
  release: z.string().exactOptional(),
  process: z.object({ pid: z.number(), started: z.string() }).exactOptional(),
  owner: z
    .object({
      sandboxId: z.string(),
      envVars: z.record(z.string(), z.string()),
      network: StoredRules.exactOptional(),
      authority: storedAuthority.exactOptional(),
      ingress: z
        .object({
          trafficAccessToken: z.string().exactOptional(),
          maskRequestHost: z.string().exactOptional(),
          httpsPorts: z.array(z.number()),
        })
        .exactOptional(),
    })
    .exactOptional(),
})

export function createRecordStore(instance: Instance): RecordStore {
  const file = (cellId: string) => join(cellDir(instance, cellId), 'cell.json')
  // Whole or not at all. What runs is gone after whatever would lose the page cache; what is paused is not.
  const write = async (record: CellRecord) => {
    const path = file(record.cellId)
    const text = JSON.stringify(record)
    if (record.phase === 'paused') return writeFileAtomic(path, text)
    await writeFile(`${path}.next`, text, { mode: 0o600 })
    await rename(`${path}.next`, path)
  }
  return {
    async create(record) {
      await mkdir(cellDir(instance, record.cellId), { recursive: true, mode: 0o700 })
      await write(record)
    },

    update: write,

    async list() {
      const entries = []
      // One after the other: there may be more than files may be open.
      for (const cellId of await listNames(cellsDir(instance))) {
        entries.push({ cellId, record: await readStored(file(cellId), Stored) })
      }
      return entries
    },

    remove: (cellId) => rm(cellDir(instance, cellId), removal),
  }
}

/** Memory may just be being packed there: a file more is no reason to leave the folder. */
const removal = { recursive: true, force: true, maxRetries: 5, retryDelay: 100 } as const
