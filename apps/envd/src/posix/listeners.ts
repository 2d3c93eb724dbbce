/**
 * Lists listening sockets of this network namespace from /proc/net. On Linux, reading tcp and tcp6 walks a hash
 * table of all namespaces, 5 ms each even for a few sockets, while socket counts are cheap. So the tables are read
 * when the counts change, and occasionally for changes that keep the counts. gVisor has no counts, but cheap
 * tables. Reads are synchronous, because thread pool round trips would cost more.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { parseListeners } from '../domain/sandbox/listeners.ts'
import type { Listener } from '../domain/sandbox/listeners.ts'

export function listenerTable(): () => readonly Listener[] {
  let listeners: readonly Listener[] = []
  let counts: string | undefined
  let unchangedReads = 0
  return () => {
    const now = readCounts()
    unchangedReads += 1
    if (now !== undefined && now === counts && unchangedReads < maxUnchangedReads) return listeners
    counts = now
    unchangedReads = 0
    listeners = parseListeners(read('/proc/net/tcp') + read('/proc/net/tcp6'))
    return listeners
  }
}

/** Number of reads in a row for which unchanged counts are trusted. */
const maxUnchangedReads = 10

function readCounts(): string | undefined {
  const text = read('/proc/net/sockstat') + read('/proc/net/sockstat6')
  return text.match(/^TCP6?: inuse \d+/gm)?.join()
}

/** Truncates tables with tens of thousands of connections; listening sockets come first. */
const limitBytes = 2 * 1024 * 1024
const chunkBytes = 64 * 1024

/** Returns an empty text for a missing file: without IPv6 there is no tcp6. */
function read(path: string): string {
  try {
    const fd = openSync(path, 'r')
    try {
      return readAll(fd)
    } finally {
      closeSync(fd)
    }
  } catch {
    return ''
  }
}

function readAll(fd: number): string {
  let text = ''
  for (let count = -1; count !== 0 && text.length < limitBytes;) {
    count = readSync(fd, chunk)
    text += chunk.toString('latin1', 0, count)
  }
  return text
}

const chunk = Buffer.alloc(chunkBytes)
