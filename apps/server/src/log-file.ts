import { closeSync, fstatSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { createLineWriter } from './log-lines.ts'
import type { LineWriter } from './log-lines.ts'

const defaultLimitBytes = 10 * 1024 * 1024

export interface LogFile extends LineWriter {
  close(): void
}

/**
 * Opens a log that takes at most twice the limit: a file over the limit is renamed to `.1` and replaces the previous
 * one. Writes are synchronous, so that the last line before a crash is in the file. Throws when the file cannot be
 * opened at first.
 *
 * Each line checks that the path still refers to the open file. A file that was deleted or moved, by an operator or by
 * this rotation, is closed once and opened again.
 */
export function openLogFile(path: string, limitBytes = defaultLimitBytes): LogFile {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  let file: OpenFile | undefined = open(path)
  const lines = createLineWriter({
    prepare(sizeBytes) {
      reopenIfMoved()
      if (file && file.sizeBytes > 0 && file.sizeBytes + sizeBytes > limitBytes) {
        renameSync(path, `${path}.1`)
        reopenIfMoved()
      }
    },
    write(bytes) {
      if (!file) throw new Error('the log file is closed')
      const written = writeSync(file.descriptor, bytes)
      file.sizeBytes += written
      return written
    },
  })
  return { ...lines, close }

  function reopenIfMoved(): void {
    if (file && isAt(path, file)) return
    close()
    makeFolder(dirname(path))
    file = open(path)
  }

  /** Clears the descriptor before closing: its number may be reused for another file or socket immediately. */
  function close(): void {
    const former = file
    file = undefined
    if (former) closeSync(former.descriptor)
  }
}

interface OpenFile {
  readonly descriptor: number
  readonly device: number
  readonly inode: number
  sizeBytes: number
}

function open(path: string): OpenFile {
  const descriptor = openSync(path, 'a', 0o600)
  const { dev, ino, size } = fstatSync(descriptor)
  return { descriptor, device: dev, inode: ino, sizeBytes: size }
}

function isAt(path: string, file: OpenFile): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found?.dev === file.device && found.ino === file.inode
}

/** Creates only the log folder: a deleted data directory is not created again. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}
