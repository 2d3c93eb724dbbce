/**
 * Captures what a backup has of this node: paused sandboxes, snapshots and templates, and the layers and builds of envd
 * that they need. Files of sandboxes and snapshots get a second name in the folder of the capture, so a resume or a
 * deletion during the copy does not touch them. Layers and builds of envd stay where they are.
 */
import { copyFile, mkdir, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sandboxes } from './app/lifecycle/sandboxes.ts'
import type { NodeConfig } from './config.ts'
import { layersDirOf } from './composition/node-files.ts'
import { cellDir, snapshotsDir, toInstallation } from './domain/host/installation.ts'
import type { CellRecord } from './domain/sandboxes/cell.ts'
import { isEvicted } from './domain/sandboxes/sandbox.ts'
import { scanBuiltTemplates } from './state/built-templates.ts'
import { linkFolder } from './state/link-folder.ts'
import { findQuarantined } from './state/quarantined.ts'
import { listNames } from './state/record-file.ts'
import { noKeys } from './state/private-values.ts'
import { createRecordStore } from './state/records.ts'
import { createSnapshotStore } from './state/snapshots.ts'
import { scanStepLayers } from './state/step-layers.ts'

export interface Capture {
  /** Captures what is there now. A second call adds what has come since. */
  collect(): Promise<void>
  /** Finds the layers and builds of envd that the captured records need. */
  finish(): Promise<CapturedNode>
}

export interface CapturedNode {
  readonly sandboxIds: readonly string[]
  readonly snapshots: number
  readonly templates: number
  /** Releases of runsc that wrote the captured memory. */
  readonly memoryReleases: readonly string[]
  /** Folders to copy. */
  readonly folders: readonly CapturedFolder[]
  /** Paths of files that are left out: their record cannot be read, or a record names them and they do not exist. */
  readonly damaged: readonly string[]
}

export interface CapturedFolder {
  /** Path below the data directory. */
  readonly path: string
  readonly from: string
}

export interface CapturePlace {
  readonly dataDir: string
  readonly layersDir: string
  /** Folder of the capture. Small files go to `settings` in it, with their path below the data directory. */
  readonly into: string
}

/** Captures a data directory whose server does not run. The caller holds the lock of the directory. */
export async function startOfflineCapture(config: NodeConfig, into: string): Promise<Capture> {
  const dataDir = await realpath(config.ATOLL_DATA_DIR)
  const records = createRecordStore(toInstallation(dataDir), noKeys)
  return startCapture(
    { dataDir, layersDir: layersDirOf(config), into },
    {
      async forEachPaused(task) {
        for (const { record } of await records.list()) {
          if (record?.owner && isKept(record)) await task({ ...record, owner: record.owner })
        }
      },
    },
  )
}

/** A resume that a crash interrupted goes back to the paused state at the next start. */
function isKept({ phase }: CellRecord): boolean {
  return phase === 'paused' || phase === 'resuming' || phase === 'evicted'
}

export function startCapture(
  place: CapturePlace,
  sandboxes: Pick<Sandboxes, 'forEachPaused'>,
): Capture {
  const { dataDir, into } = place
  const installation = toInstallation(dataDir)
  const cells = new Map<string, CellRecord>()

  async function linkCell(record: CellRecord): Promise<void> {
    if (cells.has(record.cellId)) return
    const names = new Set(['cell.json', record.disk, ...(record.memory ? ['memory'] : [])])
    const from = cellDir(installation, record.cellId)
    const to = join(into, 'cells', record.cellId)
    if (await linkFolder(from, to, (name) => names.has(name))) cells.set(record.cellId, record)
  }

  return {
    async collect() {
      await sandboxes.forEachPaused(linkCell)
      await linkSnapshots(snapshotsDir(installation), join(into, 'snapshots'))
      await copyTemplates(join(dataDir, 'templates'), join(into, 'settings/templates'))
    },

    async finish() {
      const snapshots = await createSnapshotStore(join(into, 'snapshots'), noKeys).list()
      const { templates } = await scanBuiltTemplates(join(into, 'settings/templates'))
      // Evicted sandboxes have a record only.
      const withFiles = [...cells.values()].filter((cell) => !isEvicted(cell))
      const kept = [...withFiles, ...snapshots]
      const envds = [...new Set(kept.map(({ envd }) => envd))]
      const { present, missing } = await partition([
        ...foldersIn(into, 'cells', [...cells.keys()]),
        ...foldersIn(
          into,
          'snapshots',
          snapshots.map(({ snapshotId }) => snapshotId),
        ),
        ...(await findLayers(place, [...kept, ...templates.values()])),
        ...foldersIn(dataDir, 'envd', envds),
      ])
      return {
        sandboxIds: [...cells.values()].flatMap(({ owner }) => owner?.sandboxId ?? []),
        snapshots: snapshots.length,
        templates: templates.size,
        memoryReleases: [...new Set(kept.flatMap(({ memory }) => memory ?? []))],
        folders: present,
        damaged: [...(await findQuarantined(dataDir)).map(({ path }) => path), ...missing],
      }
    },
  }
}

async function linkSnapshots(from: string, to: string): Promise<void> {
  for (const { snapshotId } of await createSnapshotStore(from, noKeys).list()) {
    const target = join(to, snapshotId)
    if (!(await isThere(target))) await linkFolder(join(from, snapshotId), target)
  }
}

async function copyTemplates(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (const name of await listNames(from)) {
    if (name.endsWith('.json')) await copyIfThere(join(from, name), join(to, name))
  }
}

/** Copies the records of the layers that these users need, and returns the folders of the layers. */
async function findLayers(
  { dataDir, layersDir, into }: CapturePlace,
  users: ReadonlyArray<{ readonly layer: string }>,
): Promise<CapturedFolder[]> {
  const { layers } = await scanStepLayers(join(dataDir, 'steps'))
  const names = new Set<string>()
  for (const { layer } of users) {
    for (let at: string | undefined = layer; at !== undefined; at = layers.get(at)?.below) {
      names.add(at)
    }
  }
  const steps = [...names].filter((name) => layers.has(name))
  const records = join(into, 'settings/steps')
  await mkdir(records, { recursive: true, mode: 0o700 })
  for (const name of steps) {
    await copyFile(join(dataDir, 'steps', `${name}.json`), join(records, `${name}.json`))
  }
  await copyLayerRecords({ layersDir, to: join(into, 'settings/layers'), names })
  const others = [...names].filter((name) => !layers.has(name))
  return [
    ...foldersIn(dataDir, 'steps', steps),
    ...others.map((name) => ({ path: `layers/${name}`, from: join(layersDir, name) })),
  ]
}

function foldersIn(root: string, folder: string, names: readonly string[]): CapturedFolder[] {
  return names.map((name) => ({ path: `${folder}/${name}`, from: join(root, folder, name) }))
}

/** Copies the records that say which of these layers belongs to which recipe, so that no recipe is built again. */
async function copyLayerRecords(parts: {
  readonly layersDir: string
  readonly to: string
  readonly names: ReadonlySet<string>
}): Promise<void> {
  const { layersDir, to, names } = parts
  await mkdir(to, { recursive: true, mode: 0o755 })
  const records = (await readdir(layersDir).catch(() => [])).filter((one) => one.endsWith('.json'))
  for (const record of records) {
    const text = await readFile(join(layersDir, record), 'utf8').catch(() => '')
    const isWanted = [...names].some((name) => text.includes(`"${name}"`))
    if (isWanted) await copyIfThere(join(layersDir, record), join(to, record))
  }
}

async function partition(folders: readonly CapturedFolder[]) {
  const present: CapturedFolder[] = []
  const missing: string[] = []
  for (const folder of folders) {
    if (await isThere(folder.from)) present.push(folder)
    else missing.push(folder.from)
  }
  return { present, missing }
}

async function copyIfThere(from: string, to: string): Promise<void> {
  await copyFile(from, to).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
