/**
 * Reads and writes regular files with the rights of the daemon. Threats: whoever works in the sandbox decides what lies
 * at a path, and may change it while we look. So nothing is decided by a path: it is opened first, without waiting, and
 * what was opened is looked at. Only the daemon's callers are let to any path, and only root's sandbox is at stake.
 */
import { constants, readSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { ReadableFile, RegularFiles } from '../../domain/files/regular-file.ts'
import type { User } from '../../domain/access/user.ts'
import { fileFault } from './file-fault.ts'
import { joinFiles } from './join-files.ts'
import { makeParents } from './parents.ts'
import { createQuickCalls } from './quick-calls.ts'
import type { QuickCalls } from './quick-calls.ts'
import { writeAll } from './write-all.ts'

export const regularFiles: RegularFiles = {
  open: (path) => openToRead(path).catch(rethrow(path)),
  write: (path, content, owner) => write(path, content, owner).catch(rethrow(path)),
  join: (sources, destination, owner) =>
    joinFiles(sources, destination, { owner, openToRead }).catch(rethrow(destination)),
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
    read: (start, length) => pieces(file, start, length),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const headBytes = 32 * 1024

/** While one piece is on its way, the next is read, so there are two buffers. Fresh ones each time would cost more. */
async function* pieces(file: FileHandle, start: number, length = Infinity) {
  const size = Math.min(pieceBytes, length)
  const spare = [Buffer.allocUnsafeSlow(size), Buffer.allocUnsafeSlow(size)]
  const quickly = createQuickCalls()
  let next = readPiece(file, spare, { at: start, left: length, quickly })
  for (let at = start, left = length; ;) {
    const piece = await next
    if (piece.length === 0) return
    at += piece.length
    left -= piece.length
    next = readPiece(file, spare, { at, left, quickly })
    next.catch(() => {}) // seen when it is waited for; nobody may, when the reader leaves
    yield piece
  }
}

async function readPiece(
  file: FileHandle,
  spare: Buffer[],
  {
    at,
    left,
    quickly,
  }: { readonly at: number; readonly left: number; readonly quickly: QuickCalls },
): Promise<Buffer> {
  const buffer = spare.shift() ?? Buffer.alloc(0)
  spare.push(buffer)
  const length = Math.min(buffer.length, left)
  if (length === 0) return buffer.subarray(0, 0)
  const bytesRead = await quickly(
    () => readSync(file.fd, buffer, 0, length, at),
    async () => (await file.read(buffer, 0, length, at)).bytesRead,
  )
  return buffer.subarray(0, bytesRead)
}

/** Under gVisor 256 KiB took a third more of the processor for the same bytes; 1 MiB is no better. */
const pieceBytes = 512 * 1024

async function write(path: string, content: AsyncIterable<Uint8Array>, owner: User): Promise<void> {
  await makeParents(dirname(path), owner)
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK
  await using file = await open(path, flags, 0o666)
  await requireRegular(file, path)
  await file.chown(owner.uid, owner.gid)
  await file.truncate(0)
  await writeAll(file, content)
}

async function requireRegular(file: FileHandle, path: string) {
  const stats = await file.stat()
  if (stats.isFile()) return stats
  const what = stats.isDirectory() ? 'is a directory' : 'is not a regular file'
  throw new Fault('invalid', 'not_a_file', `'${path}' ${what}`)
}
