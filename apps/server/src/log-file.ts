import { closeSync, fstatSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { createLineWriter } from './log-lines.ts'
import type { LineWriter } from './log-lines.ts'

const defaultLimitBytes = 10 * 1024 * 1024

export interface LogFile extends LineWriter {
  close(): void
}

/**
 * A log that takes at most twice the limit: past the limit the file becomes `.1` and replaces the former `.1`. Writes are
 * synchronous, so that the last line before a crash is in the file. Throws when the file cannot be opened at first.
 *
 * Each line checks that the path still leads to the open file. A file that was deleted or moved away, by an operator or
 * by this rotation, is closed once and opened anew.
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

  /** Forgets the descriptor before closing: its number may belong to another file or socket right afterwards. */
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

/** The folder of the log alone: a data folder that is gone stays gone. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}
