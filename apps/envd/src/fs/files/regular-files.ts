/**
 * Reads and writes regular files with the rights of envd (root). Threats: programs in the sandbox control what is
 * at a path and may replace it at any time. So files are opened first, without blocking, and all checks use the
 * descriptor. Authenticated callers may use any path, because the sandbox is theirs.
 */
import { constants, readSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { ReadableFile, RegularFiles } from '../../domain/files/regular-file.ts'
import type { User } from '../../domain/access/user.ts'
import { fileFault } from './file-fault.ts'
import { concatenateFiles } from './concatenate-files.ts'
import { createFolders } from './create-folders.ts'
import { createAdaptiveIo } from './adaptive-io.ts'
import type { AdaptiveIo } from './adaptive-io.ts'
import { writeAll } from './write-all.ts'

export const regularFiles: RegularFiles = {
  open: (path) => openToRead(path).catch(rethrow(path)),
  write: (path, content, owner) => write(path, content, owner).catch(rethrow(path)),
  concatenate: (sources, destination, owner) =>
    concatenateFiles(sources, destination, { owner, openToRead }).catch(rethrow(destination)),
}

function rethrow(path: string): (thrown: unknown) => never {
  return (thrown) => {
    throw fileFault(thrown, path)
  }
}

async function openToRead(path: string): Promise<ReadableFile> {
  await using opened = new AsyncDisposableStack()
  const file = opened.use(await open(path, constants.O_RDONLY | constants.O_NONBLOCK))
  const { size, mtimeMs } = await requireRegular(file, path)
  const head = Buffer.alloc(headBytes)
  const { bytesRead } = await file.read(head, 0, headBytes, 0)
  const owned = opened.move()
  return {
    size: size === 0 && bytesRead > 0 ? undefined : size,
    modifiedMs: mtimeMs,
    head: head.subarray(0, bytesRead),
    read: (start, length) => readChunks(file, start, length),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const headBytes = 32 * 1024

/**
 * Reads the next chunk while one is being sent. Two buffers alternate, because allocating one per chunk costs more.
 */
async function* readChunks(file: FileHandle, start: number, length = Infinity) {
  const size = Math.min(chunkBytes, length)
  const buffers = [Buffer.allocUnsafeSlow(size), Buffer.allocUnsafeSlow(size)]
  const adaptiveIo = createAdaptiveIo()
  let next = readChunk(file, buffers, { at: start, left: length, adaptiveIo })
  for (let at = start, left = length; ;) {
    const chunk = await next
    if (chunk.length === 0) return
    at += chunk.length
    left -= chunk.length
    next = readChunk(file, buffers, { at, left, adaptiveIo })
    next.catch(() => {}) // awaited by the next iteration, unless the reader stops
    yield chunk
  }
}

async function readChunk(
  file: FileHandle,
  buffers: Buffer[],
  {
    at,
    left,
    adaptiveIo,
  }: { readonly at: number; readonly left: number; readonly adaptiveIo: AdaptiveIo },
): Promise<Buffer> {
  const buffer = buffers.shift() ?? Buffer.alloc(0)
  buffers.push(buffer)
  const length = Math.min(buffer.length, left)
  if (length === 0) return buffer.subarray(0, 0)
  const bytesRead = await adaptiveIo(
    () => readSync(file.fd, buffer, 0, length, at),
    async () => (await file.read(buffer, 0, length, at)).bytesRead,
  )
  return buffer.subarray(0, bytesRead)
}

/** 256 KiB chunks took a third more CPU for the same bytes under gVisor; 1 MiB is no better. */
const chunkBytes = 512 * 1024

async function write(path: string, content: AsyncIterable<Uint8Array>, owner: User): Promise<void> {
  await createFolders(dirname(path), owner)
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK
  await using file = await open(path, flags, 0o666)
  const { size } = await requireRegular(file, path)
  await file.chown(owner.uid, owner.gid)
  // Watchers see a truncation as a write, so an empty file is left as it is.
  if (size > 0) await file.truncate(0)
  await writeAll(file, content)
}

async function requireRegular(file: FileHandle, path: string) {
  const stats = await file.stat()
  if (stats.isFile()) return stats
  const what = stats.isDirectory() ? 'is a directory' : 'is not a regular file'
  throw new Fault('invalid', 'not_a_file', `'${path}' ${what}`)
}
