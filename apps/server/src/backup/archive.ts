/**
 * Archives of a backup: one tar file per folder. Tar keeps owners, extended attributes, device files of overlay layers
 * and holes, whatever the file system of the backup supports.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { lstat, mkdir, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { finished, pipeline } from 'node:stream/promises'
import { commandEnvironment } from '@atoll/kit/command-environment'
import { run } from '@atoll/kit/run'

export interface Sum {
  readonly bytes: number
  readonly sha256: string
}

const keepAttributes = ['--numeric-owner', '--xattrs', '--xattrs-include=*']

/** Writes an archive of a folder to a new file, synced to disk. */
export async function packFolder(from: string, to: string, signal: AbortSignal): Promise<Sum> {
  const args = [
    ...['--create', '--directory', from, '--sparse', '--format=posix', '--sort=name'],
    // Modification times have nanoseconds: gVisor compares them when it restores memory.
    ...['--pax-option=delete=atime,delete=ctime', '--one-file-system', ...keepAttributes, '.'],
  ]
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe']
  const began = Date.now()
  const tar = spawn('tar', args, { stdio, signal, env: commandEnvironment() })
  const isHarmless = async (code: number | null) =>
    code === filesDiffer && !(await isWrittenSince(from, began - clockToleranceMs))
  const ended = watchEnd(tar, `tar could not read ${from}`, isHarmless)
  const counter = createCounter()
  const target = createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true })
  await Promise.all([pipeline(tar.stdout, counter.pass, target, { signal }), ended])
  // The stream syncs the file when it closes.
  if (!target.closed) await finished(target)
  return counter.sum()
}

/**
 * Exit of tar if the inode of a file changed while it was read. A new or removed hard link has that effect, and files of
 * a capture lose their first name whenever a sandbox is resumed.
 */
const filesDiffer = 1
/** The kernel stamps files with a clock that is some milliseconds late. */
const clockToleranceMs = 100

async function isWrittenSince(folder: string, time: number): Promise<boolean> {
  const entries = await opendir(folder, { recursive: true })
  for await (const entry of entries) {
    const { mtimeMs } = await lstat(join(entry.parentPath, entry.name))
    if (mtimeMs >= time) return true
  }
  return false
}

/** Extracts an archive into a folder, which it creates. */
export async function unpackFolder(archive: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  const args = [
    ...['--extract', '--file', archive, '--directory', to],
    ...['--same-owner', '--same-permissions', '--delay-directory-restore', ...keepAttributes],
  ]
  await run('tar', args, { timeoutMs: unpackLimitMs })
}

/** Tens of gigabytes on a slow disk. */
const unpackLimitMs = 4 * 60 * 60 * 1000

export async function sumOf(path: string, signal?: AbortSignal): Promise<Sum> {
  const counter = createCounter()
  const file = createReadStream(path, { highWaterMark: 1024 * 1024, ...(signal && { signal }) })
  for await (const _chunk of counter.pass(file)) signal?.throwIfAborted()
  return counter.sum()
}

function createCounter() {
  const hash = createHash('sha256')
  let bytes = 0
  return {
    async *pass(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        hash.update(chunk)
        bytes += chunk.length
        yield chunk
      }
    },
    sum: (): Sum => ({ bytes, sha256: hash.digest('hex') }),
  }
}

/** Limit on kept messages of a program. */
const maxMessages = 2_000

async function watchEnd(
  child: ChildProcess,
  failure: string,
  isHarmless: (code: number | null) => Promise<boolean>,
): Promise<void> {
  let messages = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    messages = (messages + text).slice(-maxMessages)
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code === 0 || (await isHarmless(code))) return
  throw new Error(`${failure}: ${messages.trim() || `exit ${code}`}`)
}
