import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/**
 * Locks a folder for one builder at a time, across processes. A small program holds the lock while its stdin is open,
 * so the lock is released however this process ends.
 */
export async function lockFolder(
  dir: string,
  options: {
    /** Builders with different lock files do not exclude each other. */
    readonly file?: string
    readonly onWait: () => void
    readonly signal?: AbortSignal | undefined
  },
): Promise<AsyncDisposable> {
  const { holder, ended } = startHolder([join(dir, options.file ?? '.lock')])
  const stopWaiting = () => holder.kill()
  options.signal?.addEventListener('abort', stopWaiting)
  const patience = setTimeout(options.onWait, 500)
  try {
    await Promise.race([
      once(holder.stdout, 'data'),
      ended.then(() => {
        options.signal?.throwIfAborted()
        throw new Error(`cannot lock ${dir}: another process holds the lock`)
      }),
    ])
  } finally {
    clearTimeout(patience)
    options.signal?.removeEventListener('abort', stopWaiting)
  }
  return releasing(holder, ended)
}

/** Locks a folder if no builder holds the lock. Returns undefined otherwise. */
export async function tryLockFolder(
  dir: string,
  file: string,
): Promise<AsyncDisposable | undefined> {
  const { holder, ended } = startHolder(['--nonblock', join(dir, file)])
  const isHeld = await Promise.race([
    once(holder.stdout, 'data').then(() => true),
    ended.then(() => false),
  ])
  return isHeld ? releasing(holder, ended) : undefined
}

function startHolder(lock: readonly string[]) {
  const holder = spawn('flock', [...lock, 'sh', '-c', 'echo held; exec cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  return { holder, ended: once(holder, 'close') }
}

function releasing(
  holder: ReturnType<typeof startHolder>['holder'],
  ended: Promise<unknown>,
): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      holder.stdin.end()
      await ended
    },
  }
}
