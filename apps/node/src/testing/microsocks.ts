import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tryRun } from '@atoll/kit/run'
import { aptGet } from '../debian/apt.ts'

/** Starts a real SOCKS5 server with authentication in a network namespace. */
export async function startMicrosocks(
  namespace: string,
  { port, username, password }: { port: number; username: string; password: string },
): Promise<AsyncDisposable> {
  const known = await tryRun('sh', ['-c', 'command -v microsocks'])
  if (known.code !== 0) {
    await aptGet(['update'], () => {}).catch(() => {})
    await aptGet(['install', '--yes', '--no-install-recommends', 'microsocks'], () => {})
  }
  const args = ['-p', String(port), '-u', username, '-P', password]
  const child = spawn('ip', ['netns', 'exec', namespace, 'microsocks', ...args], {
    stdio: 'ignore',
  })
  return {
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}
