/**
 * Allows one server per data directory. The lock is an abstract Unix socket named after the directory: the kernel
 * releases it when the process dies, so it is never stale.
 */
import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { createServer } from 'node:net'
import { Fault } from '@atoll/kit/fault'

/** Holds the lock until it is disposed or the process ends. Throws a fault when another server holds it. */
export async function lockDataDir(dataDir: string): Promise<AsyncDisposable> {
  const path = await realpath(dataDir)
  const name = createHash('sha256').update(path).digest('hex').slice(0, 32)
  const holder = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    holder.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? inUse(dataDir) : error)
    })
    holder.listen({ path: `\0atoll-${name}` }, resolve)
  })
  holder.unref()
  return {
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => holder.close(resolve))
    },
  }
}

function inUse(dataDir: string): Fault {
  const message =
    `Another Atoll server is using ${dataDir}. ` +
    'End it (`atoll down` also ends its sandboxes), or give this one its own ATOLL_DATA_DIR'
  return new Fault('conflict', 'data_dir_in_use', message)
}
