/** Reads the log file of the server, which is renamed to `.1` when it has become too large. */
import { open, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'

/** Inode of the file, and the number of bytes read from it. */
export interface LogPosition {
  readonly inode: number
  readonly bytes: number
}

export async function readLastLines(
  path: string,
  count: number,
): Promise<{ readonly last: readonly string[]; readonly position: LogPosition }> {
  const current = await readFrom(path, 0)
  if (!current) throw absent(path)
  const older = current.lines.length < count ? ((await readFrom(`${path}.1`, 0))?.lines ?? []) : []
  return { last: [...older, ...current.lines].slice(-count), position: current.position }
}

const pollIntervalMs = 500

/** Yields later lines forever, across renames of the file. */
export async function* followLines(path: string, from: LogPosition): AsyncGenerator<string> {
  for (let position = from; ; await sleep(pollIntervalMs)) {
    const inode = await inodeOf(path)
    if (inode !== undefined && inode !== position.inode) {
      const renamed = `${path}.1`
      if ((await inodeOf(renamed)) === position.inode) {
        yield* (await readFrom(renamed, position.bytes))?.lines ?? []
      }
      position = { inode, bytes: 0 }
    }
    const read = await readFrom(path, position.bytes)
    if (!read || read.position.inode !== position.inode) continue
    yield* read.lines
    position = read.position
  }
}

async function inodeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ ino }) => ino,
    () => undefined,
  )
}

/** Returns the complete lines after `start`, or undefined if there is no file. Both files together have 20 MB at most. */
async function readFrom(
  path: string,
  start: number,
): Promise<{ readonly lines: readonly string[]; readonly position: LogPosition } | undefined> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw unreadable(path, error)
  })
  if (!file) return undefined
  try {
    const { ino: inode, size } = await file.stat()
    // A file that shrank was truncated by another program.
    const begin = size < start ? 0 : start
    const bytes = Buffer.alloc(size - begin)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, begin)
    const end = bytes.subarray(0, bytesRead).lastIndexOf('\n') + 1
    const lines = bytes.toString('utf8', 0, end).split('\n').filter(Boolean)
    return { lines, position: { inode, bytes: begin + end } }
  } finally {
    await file.close()
  }
}

function absent(path: string): Fault {
  const message = `There is no ${path}. Start the server, set ATOLL_DATA_DIR to its data directory, or look where its supervisor keeps the output if it runs with ATOLL_LOG=stdout`
  return new Fault('not_found', 'no_server_log', message)
}

function unreadable(path: string, error: NodeJS.ErrnoException): Fault {
  const message = `Cannot read ${path} (${error.code}). Run this as root`
  return new Fault('forbidden', 'server_log_unreadable', message, { cause: error })
}
