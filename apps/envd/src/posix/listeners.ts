/**
 * What listens in this network namespace, from /proc/net. Linux walks all buckets of a table that all namespaces share
 * to write tcp and tcp6, 5 ms each for a handful of sockets; it counts the sockets in no time. So the tables are read
 * when the counts have changed, and now and then for what changed without changing them. gVisor has no counts, and
 * writes the tables in no time. All is read at once, not by the thread pool: its round trips would cost more.
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

/** How often in a row unchanged counts are believed. */
const maxUnchangedReads = 10

function readCounts(): string | undefined {
  const text = read('/proc/net/sockstat') + read('/proc/net/sockstat6')
  return text.match(/^TCP6?: inuse \d+/gm)?.join()
}

/** Of tens of thousands of connections not all are read; those that listen come first. */
const limitBytes = 2 * 1024 * 1024
const chunkBytes = 64 * 1024

/** Empty for what is not there: without IPv6 there is no tcp6. */
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
