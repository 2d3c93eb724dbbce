import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Authority, Ingress, NetworkRules } from '@atoll/contracts/network/rules'
import { syncFolder, writeFileAtomic } from '@atoll/kit/atomic-file'
import { randomHex } from '@atoll/kit/id'
import { z } from 'zod'
import { cellDir, cellsDir } from '../domain/host/installation.ts'
import type { Installation } from '../domain/host/installation.ts'
import { phases } from '../domain/sandboxes/cell.ts'
import type { CellRecord } from '../domain/sandboxes/cell.ts'
import type { QuarantinedCell } from '../domain/sandboxes/quarantine.ts'
import { cellValues, upgrades } from './private-values.ts'
import type { RecordReseal } from './private-values.ts'
import { decodeRecord, encodePrivate, isStale, listNames, readRecord } from './record-file.ts'
import type { RecordKeys } from './record-file.ts'
import { createTurns } from './turns.ts'

/** One folder per cell. Its `cell.json` is written before any other file of the cell exists. */
export interface RecordStore {
  /** Creates the folder and the record. */
  create(record: CellRecord): Promise<void>
  update(record: CellRecord): Promise<void>
  /** Adds a paused cell of another node, atomically and synced. `fill` writes its files into a new folder. */
  adopt(record: CellRecord, fill: (folder: string) => Promise<void>): Promise<void>
  list(): Promise<CellEntry[]>
  remove(cellId: string): Promise<void>
  /**
   * Renames the folder, so that no start of the node takes it for a cell again. The returned function removes its files,
   * or the next start does.
   */
  retire(cellId: string): Promise<() => Promise<void>>
  /** Seals private values again that are plain or have an older key. Safe while cells are used. */
  reseal(): Promise<RecordReseal>
}

/** A cell's folder. Without record and quarantine, it is a leftover of a cell that was being made or removed. */
export interface CellEntry {
  readonly cellId: string
  readonly record?: CellRecord
  readonly quarantined?: QuarantinedCell
}

export const storedSetup = z.object({
  user: z.string(),
  workdir: z.string().exactOptional(),
  envVars: z.record(z.string(), z.string()),
  startCommand: z.string().exactOptional(),
  readyCommand: z.string().exactOptional(),
})

/** Fields shared with snapshots. */
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

export const StoredCell = z.object({
  ...storedMakings,
  cellId: z.string(),
  phase: z.enum(phases),
  disk: z.string(),
  slotNumber: z.number().exactOptional(),
  release: z.string().exactOptional(),
  keptGeneration: z.number().exactOptional(),
  keptId: z.string().exactOptional(),
  process: z.object({ pid: z.number(), started: z.string() }).exactOptional(),
  owner: z
    .object({
      sandboxId: z.string(),
      generation: z.number().exactOptional(),
      envVars: z.record(z.string(), z.string()),
      network: NetworkRules.exactOptional(),
      authority: Authority.exactOptional(),
      ingress: Ingress.exactOptional(),
    })
    .exactOptional(),
})

/** Name prefix of folders that are being removed; cell IDs cannot contain it. */
const removing = '.'

export function createRecordStore(installation: Installation, keys: RecordKeys): RecordStore {
  const privateValues = cellValues(keys)
  const format = { schema: StoredCell, upgrades, privateValues }
  const inTurn = createTurns()
  const file = (cellId: string) => join(cellDir(installation, cellId), 'cell.json')
  // Writes are always atomic. Only records of paused cells are synced: running processes do not survive a crash of the
  // machine either.
  const write = async (record: CellRecord) => {
    const path = file(record.cellId)
    using sealing = keys.beginWrite()
    const text = encodePrivate(record, privateValues, sealing)
    if (record.phase === 'paused' || record.phase === 'evicted') {
      // The name of the cell's folder is older than the record, so both may become durable in any order.
      await Promise.all([writeFileAtomic(path, text), syncFolder(cellsDir(installation))])
      return
    }
    await writeFile(`${path}.next`, text, { mode: 0o600 })
    await rename(`${path}.next`, path)
  }

  /** Always synced: the older key may be gone from the key file when the machine starts again. */
  const reseal = async (cellId: string) => {
    const path = file(cellId)
    const text = await readFile(path, 'utf8').catch(() => undefined)
    if (text === undefined) return false
    const reading = decodeRecord(text, format)
    if (reading.state !== 'read' || !isStale(reading.record, text, privateValues)) return false
    using sealing = keys.beginWrite()
    await writeFileAtomic(path, encodePrivate(reading.record, privateValues, sealing))
    return true
  }

  async function read(cellId: string): Promise<CellEntry> {
    if (cellId.startsWith(removing)) return { cellId }
    const reading = await readRecord(file(cellId), format)
    if (reading.state === 'read') {
      const { record } = reading
      if (record.cellId === cellId) return { cellId, record }
      return quarantine(cellId, 'its record belongs to another cell', '')
    }
    if (reading.state === 'unreadable') return quarantine(cellId, reading.reason, reading.text)
    const names = (await listNames(cellDir(installation, cellId))).filter((name) => !isDraft(name))
    return names.length === 0 ? { cellId } : quarantine(cellId, 'cell.json is missing', '')
  }

  function quarantine(cellId: string, reason: string, text: string): CellEntry {
    const path = cellDir(installation, cellId)
    return { cellId, quarantined: { kind: 'sandbox', cellId, path, reason, ...readHints(text) } }
  }

  async function list(): Promise<CellEntry[]> {
    const entries = []
    // Sequential: there may be more cells than open files allowed.
    for (const cellId of await listNames(cellsDir(installation))) entries.push(await read(cellId))
    return entries
  }

  return {
    async create(record) {
      await mkdir(cellDir(installation, record.cellId), { recursive: true, mode: 0o700 })
      await inTurn(record.cellId, () => write(record))
    },

    update: (record) => inTurn(record.cellId, () => write(record)),

    async adopt(record, fill) {
      // A folder with such a name is removed at the next start, with whatever is in it.
      const work = cellDir(installation, `${removing}${record.cellId}-${randomHex(4)}`)
      await mkdir(work, { recursive: true, mode: 0o700 })
      try {
        await fill(work)
        using sealing = keys.beginWrite()
        const text = encodePrivate(record, privateValues, sealing)
        await writeFileAtomic(join(work, 'cell.json'), text)
        await rename(work, cellDir(installation, record.cellId))
        await syncFolder(cellsDir(installation))
      } catch (error) {
        // Rethrow the original error; the next start removes leftovers.
        await rm(work, removal).catch(() => {})
        throw error
      }
    },

    list,

    remove: (cellId) =>
      inTurn(cellId, async () => {
        const removeFiles = await retireFolder(installation, cellId)
        await removeFiles()
      }),

    retire: (cellId) => inTurn(cellId, () => retireFolder(installation, cellId)),

    async reseal() {
      const entries = await list()
      let resealed = 0
      for (const { cellId } of entries) {
        // The files of a cell that was retired are removed outside of its turns.
        if (cellId.startsWith(removing)) continue
        if (await inTurn(cellId, () => reseal(cellId))) resealed += 1
      }
      const unreadable = entries.filter((entry) => entry.quarantined).length
      return { resealed, unreadable }
    },
  }
}

async function retireFolder(
  installation: Installation,
  cellId: string,
): Promise<() => Promise<void>> {
  const folder = cellDir(installation, cellId)
  const isLeftover = cellId.startsWith(removing)
  if (isLeftover) return () => rm(folder, removal)
  // Renamed first: a folder without `cell.json` that was not being removed is damaged, and is kept.
  const doomed = join(cellsDir(installation), `${removing}${cellId}-${randomHex(4)}`)
  await rename(folder, doomed).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  return () => rm(doomed, removal)
}

/** Retries, because a compression of memory in progress may add a file to the folder. */
const removal = { recursive: true, force: true, maxRetries: 5, retryDelay: 100 } as const

function isDraft(name: string): boolean {
  return name === 'cell.json.next' || /^cell\.json\.[0-9a-f]+\.tmp$/.test(name)
}

/** Extracts fields from a damaged record. The first match counts: variables set by the user come after these fields. */
function readHints(text: string): Pick<QuarantinedCell, 'sandboxId' | 'slotNumber'> {
  const sandboxId = /"sandboxId":"([a-z0-9]{1,63})"/.exec(text)?.[1]
  const slotNumber = /"slotNumber":(\d{1,5})\b/.exec(text)?.[1]
  return {
    ...(sandboxId !== undefined && { sandboxId }),
    ...(slotNumber !== undefined && { slotNumber: Number(slotNumber) }),
  }
}
