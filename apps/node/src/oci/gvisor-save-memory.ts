import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Runtime, SaveOptions } from '../domain/sandboxes/runtime.ts'
import type { GvisorControl } from './gvisor-control.ts'
import { repairImage } from './gvisor-image-repair.ts'

/**
 * gVisor closes outside connections while it saves, and depending on the order the saved epoll sets are wrong: copies
 * may spin forever. An image in which no connection was aborted is right. Otherwise the sandbox is saved again, since it
 * has no connections left. With much memory, connections are closed first by a save that writes no file.
 */
export function createSaveMemory(
  control: () => Promise<Pick<GvisorControl, 'save' | 'closeConnections'>>,
): Runtime['saveMemory'] {
  async function saveConsistently(
    cellId: string,
    memoryDir: string,
    { memoryBytes = 0 }: SaveOptions,
  ): Promise<void> {
    const { save, closeConnections } = await control()
    const closesFirst = memoryBytes > saveTwiceLimitBytes
    await makeEmpty(memoryDir)
    if (closesFirst) await closeConnections(cellId, memoryDir)
    const image = join(memoryDir, 'checkpoint.img')
    await save(cellId, memoryDir)
    const findings = await repairImage(image)
    if (closesFirst || findings?.hasAbortedConnections === false) return
    await makeEmpty(memoryDir)
    await save(cellId, memoryDir)
    await repairImage(image)
  }

  return async (cellId, memoryDir, options = {}) => {
    const saveOnceOpen = (waitsMs: readonly number[]): Promise<void> =>
      saveConsistently(cellId, memoryDir, options).catch(async (error: unknown) => {
        if (!isOpening(error)) throw deletedFile(error) ?? error
        const [waitMs, ...more] = waitsMs
        if (waitMs === undefined) throw connectionOpens(error)
        await sleep(waitMs)
        if (waitsMs !== openingWaitsMs) await options.endHalfOpen?.()
        return saveOnceOpen(more)
      })
    await saveOnceOpen(openingWaitsMs)
  }
}

/** gVisor does not overwrite the files of an earlier save. */
async function makeEmpty(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true })
  await mkdir(dir, { recursive: true, mode: 0o700 })
}

/** Memory size up to which writing it a second time takes less than a save that writes no file. */
const saveTwiceLimitBytes = 128 * 1024 * 1024

/**
 * Tests for a gVisor bug: closing a half-open connection panics, because the reset needs a sender that does not exist
 * yet.
 */
function isOpening(error: unknown): boolean {
  return error instanceof Fault && /tcp\.\(\*Endpoint\)\.reset/.test(error.message)
}

function connectionOpens(cause: unknown): Fault {
  const message =
    'Memory cannot be kept while a program waits for a connection to be opened, such as to a server that does not answer'
  return new Fault('invalid', 'connection_opens', message, { cause })
}

/**
 * Waits between attempts. Most connections open within milliseconds; the others are ended before the later attempts.
 */
const openingWaitsMs: readonly number[] = [100, 10, 400, 1200]

/** Detects an open deleted file: a restore finds files by path, and a deleted file has none. */
function deletedFile(error: unknown): Fault | undefined {
  if (!(error instanceof Fault)) return undefined
  const path = /gofer\.dentry\("(.{0,200}?)"\)\.beforeSave: deleted/.exec(error.message)?.[1]
  if (path === undefined) return undefined
  const message = `Memory cannot be kept while a program holds a deleted file open: "/${path}"`
  return new Fault('invalid', 'deleted_file_open', message, { cause: error })
}
