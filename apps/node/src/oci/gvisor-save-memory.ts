import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Runtime } from '../domain/sandboxes/runtime.ts'
import type { Scratch } from '../linux/disks/scratch.ts'
import type { CommandOptions, OciCommands } from './commands.ts'
import { disarmStaleInterests } from './gvisor-stale-interests.ts'

/**
 * gVisor closes outside connections while it saves, and depending on the order the saved epoll sets are wrong: copies
 * may spin forever. After a first attempt no such connections are left. The scratch disk makes the first attempt fail
 * as soon as all but the memory pages is written.
 */
export function createSaveMemory(
  commands: Pick<OciCommands, 'execute'>,
  scratch: Scratch,
): Runtime['saveMemory'] {
  const checkpoint = (cellId: string, dir: string, options?: CommandOptions) =>
    commands.execute('checkpoint', [...flags, '--image-path', dir, cellId], options)

  async function saveTwice(cellId: string, memoryDir: string): Promise<void> {
    await scratch.use((dir) => checkpoint(cellId, dir).catch(() => {}))
    // runsc does not overwrite the files of a failed attempt.
    await rm(memoryDir, { recursive: true, force: true })
    await mkdir(memoryDir, { recursive: true, mode: 0o700 })
    await checkpoint(cellId, memoryDir, { timeoutMs: saveLimitMs })
  }

  return async (cellId, memoryDir, endHalfOpen) => {
    const saveOnceOpen = (waitsMs: readonly number[]): Promise<void> =>
      saveTwice(cellId, memoryDir).catch(async (error: unknown) => {
        if (!isOpening(error)) throw deletedFile(error) ?? error
        const [waitMs, ...more] = waitsMs
        if (waitMs === undefined) throw connectionOpens(error)
        await sleep(waitMs)
        if (waitsMs !== openingWaitsMs) await endHalfOpen?.()
        return saveOnceOpen(more)
      })
    await saveOnceOpen(openingWaitsMs)
    // Restored programs would otherwise get events for descriptors that they closed before.
    await disarmStaleInterests(join(memoryDir, 'checkpoint.img'))
  }
}

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

/** Allows time to write gigabytes to a busy disk. */
const saveLimitMs = 240_000

const flags = ['--leave-running', '--compression=none', '--exclude-committed-zero-pages']
