/** Restores a backup into an empty data directory. Everything is checked before the directory changes. */
import { mkdir, readdir, realpath, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { syncFolder } from '@atoll/kit/atomic-file'
import { Fault } from '@atoll/kit/fault'
import { randomLabel } from '@atoll/kit/id'
import { run } from '@atoll/kit/run'
import type { ServerConfig } from '../config.ts'
import { lockDataDir } from '../lock.ts'
import { sumOf, unpackFolder } from './archive.ts'
import { checkMachine, thisMachine } from './check-machine.ts'
import { damaged, readManifest } from './manifest.ts'
import type { Archive, Manifest } from './manifest.ts'
import { restoreFolder } from './work-folders.ts'

export interface RestoreOptions {
  /** Accept memory that the runsc of this machine cannot read. */
  readonly anyRunsc: boolean
  readonly signal: AbortSignal
  progress(label: string, fraction: number): void
}

const syncLimitMs = 600_000

export async function restoreBackup(
  config: ServerConfig,
  from: string,
  options: RestoreOptions,
): Promise<Manifest> {
  const source = resolve(from)
  const manifest = await readManifest(source)
  await checkMachine(manifest, thisMachine(config), options)
  checkDatabase(manifest, config)
  await mkdir(config.server.ATOLL_DATA_DIR, { recursive: true, mode: 0o700 })
  const dataDir = await realpath(config.server.ATOLL_DATA_DIR)
  await using _lock = await lockDataDir(dataDir)
  await checkEmpty(dataDir)
  await verifyArchives(source, manifest, options)
  await extract({ source, manifest, dataDir, layersDir: config.node.ATOLL_LAYERS_DIR }, options)
  return manifest
}

function checkDatabase({ store }: Manifest, { api }: ServerConfig): void {
  if (store === 'postgres' || api.ATOLL_DATABASE_URL === undefined) return
  throw new Fault(
    'conflict',
    'restore_database',
    'The backup has a store of SQLite, and ATOLL_DATABASE_URL names a PostgreSQL. Unset ATOLL_DATABASE_URL: a store cannot change its kind',
  )
}

async function checkEmpty(dataDir: string): Promise<void> {
  const names = (await readdir(dataDir)).filter((name) => name !== 'lost+found')
  if (names.length === 0) return
  throw new Fault(
    'conflict',
    'restore_not_empty',
    `${dataDir} is not empty. Set ATOLL_DATA_DIR to an empty directory, or one that does not exist yet`,
  )
}

async function verifyArchives(
  source: string,
  { archives }: Manifest,
  { signal, progress }: RestoreOptions,
): Promise<void> {
  for (const [index, { path, bytes, sha256 }] of archives.entries()) {
    progress(`check ${path}`, index / archives.length / 2)
    const name = `${path}.tar`
    const found = await stat(join(source, name)).catch(() => undefined)
    if (!found) throw damaged(source, `${name} is missing`)
    if (found.size !== bytes) throw damaged(source, `${name} has ${found.size} bytes, not ${bytes}`)
    const sum = await sumOf(join(source, name), signal)
    if (sum.sha256 !== sha256) throw damaged(source, `the checksum of ${name} is wrong`)
  }
}

interface Extraction {
  readonly source: string
  readonly manifest: Manifest
  readonly dataDir: string
  /** Folder of layers outside the data directory. */
  readonly layersDir: string | undefined
}

async function extract(
  { source, manifest, dataDir, layersDir }: Extraction,
  { signal, progress }: RestoreOptions,
): Promise<void> {
  const work = restoreFolder(dataDir)
  const moved: string[] = []
  try {
    await mkdir(work, { mode: 0o700 })
    for (const [index, archive] of manifest.archives.entries()) {
      signal.throwIfAborted()
      progress(`restore ${archive.path}`, 0.5 + index / manifest.archives.length / 2)
      await extractOne(source, archive, { work, layersDir })
    }
    if (layersDir !== undefined) await moveMissing(join(work, 'layers'), layersDir)
    await run('sync', ['--file-system', work], { timeoutMs: syncLimitMs })
    signal.throwIfAborted()
    for (const name of await readdir(work)) {
      await rename(join(work, name), join(dataDir, name))
      moved.push(name)
    }
    await rmdir(work)
    await syncFolder(dataDir)
  } catch (error) {
    for (const name of [...moved, '.restore']) {
      await rm(join(dataDir, name), { recursive: true, force: true })
    }
    signal.throwIfAborted()
    throw error
  }
}

async function extractOne(
  source: string,
  { path }: Archive,
  { work, layersDir }: { readonly work: string; readonly layersDir: string | undefined },
): Promise<void> {
  const archive = join(source, `${path}.tar`)
  if (path === 'settings' || path === 'store') return unpackFolder(archive, work)
  const layer = /^layers\/(.+)$/.exec(path)?.[1]
  if (layer === undefined || layersDir === undefined) return unpackFolder(archive, join(work, path))
  await extractLayer(archive, join(layersDir, layer))
}

/** Layers are named after their content, so one that is there already is the same. */
async function extractLayer(archive: string, to: string): Promise<void> {
  if (await stat(to).catch(() => undefined)) return
  const draft = join(dirname(to), `.tmp-restore-${randomLabel(8)}`)
  try {
    await unpackFolder(archive, draft)
    await run('sync', ['--file-system', draft], { timeoutMs: syncLimitMs })
    await rename(draft, to)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

async function moveMissing(from: string, to: string): Promise<void> {
  const names = await readdir(from).catch(() => [])
  for (const name of names) {
    const isThere = await stat(join(to, name)).catch(() => undefined)
    if (!isThere) await run('mv', [join(from, name), join(to, name)], { timeoutMs: syncLimitMs })
  }
  await rm(from, { recursive: true, force: true })
}
