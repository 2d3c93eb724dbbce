import { closeSync, fstatSync, readSync } from 'node:fs'
import type { Stats } from 'node:fs'
import type { ChangedContent, FileSide } from '../../domain/sandboxes/changes.ts'
import { findBefore } from './changed-directory.ts'
import type { ChangedDirectory } from './changed-directory.ts'
import { enterAll, typeOf } from './list-changes.ts'
import { isWhiteout, linkTargetOf, openFile, statOf } from './open-below.ts'

/** Reads one entry before and after the change. Returns undefined if the sandbox has not changed it. */
export function readChange(
  root: ChangedDirectory,
  path: readonly Buffer[],
  maxBytes: number,
): ChangedContent | undefined {
  const name = path.at(-1)
  if (!name) return undefined
  using parent = enterAll(root, path.slice(0, -1))
  const { directory } = parent
  if (!directory) return undefined
  const { upper, lowers, isOpaque } = directory
  const stat = statOf(upper, name)
  const found = findBefore(lowers, name)
  if (!stat && !(isOpaque && found)) return undefined
  const before = found && readSide(found.parent, name, found.stat, maxBytes)
  const after = stat && !isWhiteout(stat) ? readSide(upper, name, stat, maxBytes) : undefined
  if (!before && !after) return undefined
  return { ...(before && { before }), ...(after && { after }) }
}

function readSide(parent: number, name: Buffer, stat: Stats, maxBytes: number): FileSide {
  const side = { type: typeOf(stat), sizeBytes: stat.size, mode: stat.mode & 0o7777 }
  if (stat.isSymbolicLink()) {
    return { ...side, content: linkTargetOf(parent, name) ?? Buffer.alloc(0), isTruncated: false }
  }
  const fd = stat.isFile() ? openFile(parent, name) : undefined
  if (fd === undefined)
    return { ...side, sizeBytes: 0, content: Buffer.alloc(0), isTruncated: false }
  try {
    return { ...side, ...readBytes(fd, maxBytes) }
  } finally {
    closeSync(fd)
  }
}

function readBytes(fd: number, maxBytes: number): Pick<FileSide, 'content' | 'isTruncated'> {
  // The sandbox may have replaced the file since.
  if (!fstatSync(fd).isFile()) return { content: Buffer.alloc(0), isTruncated: false }
  const bytes = Buffer.alloc(maxBytes + 1)
  let length = 0
  for (;;) {
    const read = readSync(fd, bytes, length, bytes.length - length, length)
    length += read
    if (read === 0 || length > maxBytes) break
  }
  return { content: bytes.subarray(0, Math.min(length, maxBytes)), isTruncated: length > maxBytes }
}
