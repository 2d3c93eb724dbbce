import { constants } from 'node:fs'
import { access, mkdir, readdir, realpath, rename, rm, statfs } from 'node:fs/promises'
import { arch } from 'node:process'
import { dirname, join, resolve } from 'node:path'
import { copySqliteFile } from '@atoll/api'
import { syncFolder, writeFileAtomic } from '@atoll/kit/atomic-file'
import { Fault } from '@atoll/kit/fault'
import { randomLabel } from '@atoll/kit/id'
import { startOfflineCapture } from '@atoll/node/capture'
import manifestOfServer from '../../package.json' with { type: 'json' }
import type { ServerConfig } from '../config.ts'
import { lockDataDir } from '../lock.ts'
import { packFolder } from './archive.ts'
import { captureThroughServer } from './backup-socket.ts'
import { captureInstallation } from './capture.ts'
import type { Captured } from './capture.ts'
import { encodeManifest, manifestName } from './manifest.ts'
import type { Archive, Manifest } from './manifest.ts'
import { backupSocketPath } from './socket-path.ts'
import { captureFolder } from './work-folders.ts'

export interface Backup {
  readonly manifest: Manifest
  readonly captured: Captured
  readonly path: string
}

export interface BackupOptions {
  readonly signal: AbortSignal
  progress(label: string, fraction: number): void
}

/** Writes a backup of the data directory to a new folder. The folder appears when it is complete. */
export async function takeBackup(
  config: ServerConfig,
  target: string,
  options: BackupOptions,
): Promise<Backup> {
  const dataDir = await realpath(config.server.ATOLL_DATA_DIR).catch((cause: unknown) => {
    const message = `There is no data directory ${config.server.ATOLL_DATA_DIR}. Set ATOLL_DATA_DIR`
    throw new Fault('not_found', 'backup_no_data', message, { cause })
  })
  const path = resolve(target)
  await checkTarget(path, dataDir)
  await using capture = await openCapture(config, dataDir)
  const { captured } = capture
  const signal = AbortSignal.any([options.signal, capture.lost])
  const work = `${path}.partial-${randomLabel(8)}`
  try {
    await mkdir(work, { mode: 0o700 })
    const archives = await writeArchives(captured, work, { ...options, signal })
    const manifest = describe(captured, archives)
    await syncFolder(work)
    signal.throwIfAborted()
    await writeFileAtomic(join(work, manifestName), encodeManifest(manifest))
    await rename(work, path)
    await syncFolder(dirname(path))
    return { manifest, captured, path }
  } catch (error) {
    await rm(work, { recursive: true, force: true })
    signal.throwIfAborted()
    throw await explainFull(error, dirname(path))
  }
}

async function checkTarget(path: string, dataDir: string): Promise<void> {
  const parent = await realpath(dirname(path)).catch((cause: unknown) => {
    const message = `${dirname(path)} does not exist. Create it, or choose another target`
    throw new Fault('not_found', 'backup_target', message, { cause })
  })
  if (`${parent}/`.startsWith(`${dataDir}/`)) {
    const message = `${path} is inside the data directory ${dataDir}. Choose a target outside, best on another machine`
    throw new Fault('invalid', 'backup_target', message)
  }
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new Fault('conflict', 'backup_target', `${path} exists and is not a directory`, {
      cause: error,
    })
  })
  if (names.length > 0) {
    const message = `${path} is not empty. Choose a directory that does not exist yet`
    throw new Fault('conflict', 'backup_target', message)
  }
  await access(parent, constants.W_OK)
}

interface OpenedCapture extends AsyncDisposable {
  readonly captured: Captured
  readonly lost: AbortSignal
}

/** Captures through the server if one runs, and directly otherwise. */
async function openCapture(config: ServerConfig, dataDir: string): Promise<OpenedCapture> {
  await using opened = new AsyncDisposableStack()
  try {
    opened.use(await lockDataDir(dataDir))
  } catch (error) {
    if (!(error instanceof Fault && error.reason === 'data_dir_in_use')) throw error
    const capture = opened.use(await captureThroughServer(backupSocketPath(dataDir), dataDir))
    return { captured: capture.captured, lost: capture.lost, ...owning(opened.move()) }
  }
  await rm(captureFolder(dataDir), { recursive: true, force: true })
  const usesPostgres = config.api.ATOLL_DATABASE_URL !== undefined
  const capture = opened.use(
    await captureInstallation({
      dataDir,
      async openCapture(into) {
        const node = await startOfflineCapture(config.node, into)
        return { ...node, [Symbol.dispose]() {} }
      },
      copyStore: usesPostgres ? undefined : (to) => copySqliteFile(join(dataDir, 'atoll.db'), to),
    }),
  )
  return {
    captured: capture.captured,
    lost: new AbortController().signal,
    ...owning(opened.move()),
  }
}

function owning(stack: AsyncDisposableStack): AsyncDisposable {
  return { [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function writeArchives(
  { folders }: Captured,
  work: string,
  { signal, progress }: BackupOptions,
): Promise<Archive[]> {
  const archives: Archive[] = []
  for (const [index, { path, from }] of folders.entries()) {
    progress(path, index / folders.length)
    const to = join(work, `${path}.tar`)
    await mkdir(dirname(to), { recursive: true, mode: 0o700 })
    archives.push({ path, ...(await packFolder(from, to, signal)) })
  }
  for (const folder of new Set(folders.map(({ path }) => dirname(path)))) {
    await syncFolder(join(work, folder))
  }
  return archives
}

function describe(captured: Captured, archives: readonly Archive[]): Manifest {
  const { store, sandboxes, snapshots, templates, memoryReleases } = captured
  return {
    createdAt: new Date().toISOString(),
    release: manifestOfServer.version,
    architecture: arch,
    ...{ store, sandboxes, snapshots, templates, memoryReleases },
    archives: [...archives],
  }
}

async function explainFull(error: unknown, parent: string): Promise<unknown> {
  const isFull = error instanceof Error && 'code' in error && error.code === 'ENOSPC'
  if (!isFull) return error
  const { bavail, bsize } = await statfs(parent)
  const freeMb = Math.floor((bavail * bsize) / 1024 ** 2)
  const message = `Not enough disk space for the backup: ${parent} has ${freeMb} MB free. Nothing was kept`
  return new Fault('conflict', 'backup_target', message, { cause: error })
}
