import { closeSync, constants, openSync, readSync, statSync } from 'node:fs'

/**
 * Returns a function that reads and parses a small file, and caches the result until the file changes. A missing
 * file counts as empty.
 *
 * Threats: root in the sandbox can make the file huge, or a pipe without a writer. Calls are synchronous: under
 * gVisor a thread pool round trip costs more than ten of them.
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
