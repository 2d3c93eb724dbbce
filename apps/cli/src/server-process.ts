import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'

/** The server of a data directory, found by the pid file that it keeps there while it runs. */

/** Undefined when none runs. The file may outlive its writer, and the number then belong to somebody else. */
export async function findServer(dataDir: string): Promise<number | undefined> {
  const text = await readIfThere(join(dataDir, 'server.pid'))
  const pid = Number(text?.trim())
  if (!Number.isInteger(pid) || pid <= 1) return undefined
  return (await isServer(pid)) ? pid : undefined
}

/** Asks the server to end and waits; one that does not is killed. Sandboxes go on either way. */
export async function stopServer(pid: number, graceMs = 15_000): Promise<'stopped' | 'killed'> {
  process.kill(pid, 'SIGTERM')
  const isGone = async () => !(await isServer(pid))
  try {
    await waitFor(`the server (pid ${pid}) to end`, isGone, { timeoutMs: graceMs })
    return 'stopped'
  } catch {
    process.kill(pid, 'SIGKILL')
    await waitFor(`the killed server (pid ${pid}) to end`, isGone)
    return 'killed'
  }
}

async function isServer(pid: number): Promise<boolean> {
  const commandLine = await readIfThere(`/proc/${pid}/cmdline`)
  const words = commandLine?.split('\0') ?? []
  return words.some((word) => /(^|\/)(atoll|main\.ts)$/.test(word))
}

function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // ESRCH: the process ended between the opening of its file and the reading.
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  })
}
