import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Runtime, SaveOptions } from '../domain/sandboxes/runtime.ts'
import type { GvisorControl } from './gvisor-control.ts'
import { repairImage } from './gvisor-image-repair.ts'

/**
 * Saves the memory of a sandbox so that restored copies work.
 *
 * gVisor aborts outside connections while it saves. Depending on the order, it saves wrong epoll sets, and programs in
 * restored copies spin forever. An image without aborted connections is correct. Otherwise the sandbox, which has no
 * outside connections left, is saved a second time. If the sandbox has much memory, a save without files first aborts
 * the connections, so that the memory is written only once.
 */
export function createSaveMemory(
  control: () => Promise<Pick<GvisorControl, 'save' | 'closeConnections'>>,
): Runtime['saveMemory'] {
  async function saveConsistently(
    cellId: string,
    memoryDir: string,
    { memoryBytes = 0, flushFiles = async () => {} }: SaveOptions,
  ): Promise<void> {
    const { save, closeConnections } = await control()
    const closesFirst = memoryBytes > saveTwiceLimitBytes
    await emptyFolder(memoryDir)
    if (closesFirst) await closeConnections(cellId, memoryDir)
    const image = join(memoryDir, 'checkpoint.img')
    await save(cellId, memoryDir)
    const [findings] = await Promise.all([repairImage(image), flushFiles()])
    if (closesFirst || findings?.hasAbortedConnections === false) return
    await emptyFolder(memoryDir)
    await save(cellId, memoryDir)
    await Promise.all([repairImage(image), flushFiles()])
  }

  return async (cellId, memoryDir, options = {}) => {
    const saveWithRetries = (remainingWaitsMs: readonly number[]): Promise<void> =>
      saveConsistently(cellId, memoryDir, options).catch(async (error: unknown) => {
        if (!isHalfOpenPanic(error)) throw deletedFileFault(error) ?? error
        const [waitMs, ...more] = remainingWaitsMs
        if (waitMs === undefined) throw halfOpenFault(error)
        await sleep(waitMs)
        if (remainingWaitsMs !== retryWaitsMs) await options.endHalfOpen?.()
        return saveWithRetries(more)
      })
    await saveWithRetries(retryWaitsMs)
  }
}

/** Empties the folder: gVisor does not overwrite the files of an earlier save. */
async function emptyFolder(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true })
  await mkdir(dir, { recursive: true, mode: 0o700 })
}

/** Memory size up to which a second save is faster than a save without files before the only save. */
const saveTwiceLimitBytes = 128 * 1024 * 1024

/**
 * Tests for a gVisor bug: a save panics while a connection is half open, because the reset needs a sender that does not
 * exist yet.
 */
function isHalfOpenPanic(error: unknown): boolean {
  return error instanceof Fault && /tcp\.\(\*Endpoint\)\.reset/.test(error.message)
}

function halfOpenFault(cause: unknown): Fault {
  const message =
    'Memory cannot be saved while a program opens a connection, for example to a server that does not respond. Try again when the connection is open or has failed.'
  return new Fault('invalid', 'connection_opens', message, { cause })
}

/**
 * Waits between attempts. Most connections open within milliseconds. From the third attempt on, connections that are
 * still half open are ended first.
 */
const retryWaitsMs: readonly number[] = [100, 10, 400, 1200]

/** Detects a deleted file that is still open: a restore opens files by path, and a deleted file has no path. */
function deletedFileFault(error: unknown): Fault | undefined {
  if (!(error instanceof Fault)) return undefined
  const path = /gofer\.dentry\("(.{0,200}?)"\)\.beforeSave: deleted/.exec(error.message)?.[1]
  if (path === undefined) return undefined
  const message = `Memory cannot be saved while a program holds a deleted file open: "/${path}". Close the file and try again.`
  return new Fault('invalid', 'deleted_file_open', message, { cause: error })
}
