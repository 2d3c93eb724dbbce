/**
 * Named pipes for the processes to come. Node.js makes socket pairs where others make pipes, and programs notice: a
 * socket cannot be opened anew as /dev/stdout, and bash takes it for a remote shell's. The helper program makes the
 * pipes in batches and ahead of need, since asking it for each process would cost as much as the process itself.
 */
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { SpawnerProcess } from '@atoll/kit/spawner-process'

export interface FifoPool extends AsyncDisposable {
  /** Paths of pipes that nobody else gets, each to be opened once and removed. At most one batch of them. */
  take(count: number): Promise<string[]>
  /** For when a path was found to be no good: somebody emptied the folder, so the others are no better. */
  discardAll(): void
  /** Makes the first batch ahead of need. Ends when it is there. */
  warm(): Promise<void>
}

/** The folder is the pool's own: what an earlier daemon left in it goes. */
export function createFifoPool(options: {
  readonly spawnerProcess: SpawnerProcess
  readonly folder: string
}): FifoPool {
  const { spawnerProcess, folder } = options
  const ready: string[] = []
  let batches = 0
  let needsReset = true // whatever is in the folder now
  let refilling: Promise<void> | undefined
  let isClosed = false

  return {
    async take(count) {
      while (ready.length < count) await refill()
      const taken = ready.splice(0, count)
      if (ready.length < batchSize / 2) refillInBackground()
      return taken
    },
    discardAll() {
      needsReset = true
      ready.splice(0)
    },
    async warm() {
      if (ready.length === 0) await refill()
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      await refilling?.catch(() => {})
      await removeFolder().catch(() => {}) // then the next daemon does
    },
  }

  function refillInBackground(): void {
    refill().catch(() => {}) // whoever finds the pool empty tries again, and learns why it stays so
  }

  function refill(): Promise<void> {
    refilling ??= makeBatch().finally(() => {
      refilling = undefined
    })
    return refilling
  }

  async function makeBatch(): Promise<void> {
    if (isClosed) throw new Error('the pool of pipes is closed')
    if (needsReset) {
      ready.splice(0)
      await removeFolder()
      needsReset = false
    }
    await mkdir(dirname(folder), { recursive: true })
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const prefix = join(folder, `${batches++}-`)
    const { exit } = await spawnerProcess.start({
      stdio: [undefined, '', ''],
      args: ['fifos', prefix, String(batchSize)],
      env: {},
    })
    const end = await exit
    if (end.by === 'signal' || end.code !== 0) throw new Error(`no pipes in ${folder}`)
    ready.push(...Array.from({ length: batchSize }, (_, at) => `${prefix}${at}`))
  }

  function removeFolder(): Promise<void> {
    return rm(folder, { recursive: true, force: true })
  }
}

/** For some fifty processes. What a batch costs is a fork of the helper program, hardly the pipes in it. */
const batchSize = 128
