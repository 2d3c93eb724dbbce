import { open } from 'node:fs/promises'
import { parseListeners } from '../domain/listening.ts'
import type { Listener } from '../domain/listening.ts'

/** All that listens in this network namespace. */
export async function readListeners(): Promise<Listener[]> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map(readTable))
  return tables.flatMap(parseListeners)
}

/** The kernel names those that listen first. Of tens of thousands of connections behind them not all are read. */
const tableLimitBytes = 2 * 1024 * 1024
const pieceBytes = 64 * 1024

async function readTable(path: string): Promise<string> {
  await using file = await open(path, 'r').catch(() => undefined) // without IPv6 there is no tcp6
  const pieces: Buffer[] = []
  for (let size = 0; file && size < tableLimitBytes;) {
    const buffer = Buffer.allocUnsafe(pieceBytes)
    const { bytesRead } = await file.read(buffer, 0, buffer.length)
    if (bytesRead === 0) break
    size += bytesRead
    pieces.push(buffer.subarray(0, bytesRead))
  }
  return Buffer.concat(pieces).toString('latin1')
}
