import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

const defaultLimitBytes = 10 * 1024 * 1024

/**
 * A log that cannot fill the disk: past the limit the file becomes `.1`, and the former `.1` goes. Writes are
 * synchronous, so that the last line before a crash is there too.
 */
export function openLogFile(
  path: string,
  limitBytes = defaultLimitBytes,
): { write(line: string): void; close(): void } {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  let file = openSync(path, 'a', 0o600)
  let size = fstatSync(file).size
  return {
    write(line) {
      const bytes = Buffer.from(line)
      if (size > 0 && size + bytes.length > limitBytes) rotate()
      try {
        size += writeSync(file, bytes)
      } catch {
        // A full disk must not stop the service that would log about it.
      }
    },
    close: () => closeSync(file),
  }

  function rotate(): void {
    closeSync(file)
    renameSync(path, `${path}.1`)
    file = openSync(path, 'a', 0o600)
    size = 0
  }
}
