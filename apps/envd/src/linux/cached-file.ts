import { closeSync, constants, openSync, readSync, statSync } from 'node:fs'

/**
 * What `parse` makes of a small file, anew only after it changed; what it makes of nothing when there is no file.
 *
 * Threats: whoever is root in the sandbox can make it as large as the disk, or a pipe that nobody writes to. The calls are
 * those that do not wait: under gVisor a turn of the thread pool costs more than ten of them.
 */
export function cachedFile<T>(path: string, parse: (text: string) => T): () => T {
  const nothing = parse('')
  let version = ''
  let parsed = nothing
  return () => {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (!found?.isFile()) return nothing
    const { ino, mtimeNs, size } = found
    const current = `${ino}:${mtimeNs}:${size}`
    if (current !== version) {
      parsed = parse(readStart(path, Math.min(Number(size), sizeLimitBytes)))
      version = current
    }
    return parsed
  }
}

const sizeLimitBytes = 4 * 1024 * 1024

function readStart(path: string, length: number): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const buffer = Buffer.alloc(length)
    return buffer.toString('utf8', 0, readSync(file, buffer, 0, length, 0))
  } finally {
    closeSync(file)
  }
}
