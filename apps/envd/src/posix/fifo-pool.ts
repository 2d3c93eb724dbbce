/**
 * Pool of named pipes for future processes. Node.js creates socket pairs instead of pipes, which programs notice: a
 * socket cannot be reopened as /dev/stdout, and bash mistakes it for a remote shell. The guest program creates
 * pipes in batches ahead of need, because one call per process would cost as much as the process itself.
 */
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { SpawnerProcess } from '@atoll/kit/spawner/process'

export interface FifoPool extends AsyncDisposable {
  /** Returns paths of unused pipes, at most one batch. The caller opens each once and removes it. */
  take(count: number): Promise<string[]>
  /** Discards all pipes after one turned out to be missing: something emptied the folder. */
  discardAll(): void
  /** Creates the first batch, unless there is one. */
  warm(): Promise<void>
}

/** The pool owns the folder, and deletes what an earlier envd process left there. */
export function createFifoPool(options: {
  readonly spawnerProcess: SpawnerProcess
  readonly folder: string
}): FifoPool {
  const { spawnerProcess, folder } = options
  const ready: string[] = []
  let batches = 0
  let needsReset = true // the folder may contain pipes of an earlier process
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
      await removeFolder().catch(() => {}) // the next envd process deletes the folder
    },
  }

  function refillInBackground(): void {
    refill().catch(() => {}) // a caller that finds the pool empty retries and gets the error
  }

  function refill(): Promise<void> {
    refilling ??= makeBatch().finally(() => {
      refilling = undefined
    })
    return refilling
  }

  async function makeBatch(): Promise<void> {
    if (isClosed) throw new Error('The pipe pool is closed')
    if (needsReset) {
      ready.splice(0)
      await removeFolder()
      needsReset = false
    }
    await mkdir(dirname(folder), { recursive: true })
    await mkdir(folder, { recursive: true, mode: 0o700 })
    ready.push(...(await createFifos(spawnerProcess, join(folder, `${batches++}-`))))
  }

  function removeFolder(): Promise<void> {
    return rm(folder, { recursive: true, force: true })
  }
}

async function createFifos(spawnerProcess: SpawnerProcess, prefix: string): Promise<string[]> {
  const { exit } = await spawnerProcess.start({
    stdio: [undefined, '', ''],
    args: ['fifos', prefix, String(batchSize)],
    env: {},
  })
  const end = await exit
  if (end.by === 'signal' || end.code !== 0) throw new Error(`Failed to create pipes ${prefix}*`)
  return Array.from({ length: batchSize }, (_, index) => `${prefix}${index}`)
}

/** Enough for about fifty processes. The cost of a batch is the process that creates it, not the pipes. */
const batchSize = 128
