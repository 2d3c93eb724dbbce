import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Ports below the range that Linux uses for the local end of outgoing connections. */
const first = 20_000
const last = 32_000

/**
 * Returns a port of 127.0.0.1 for a server that starts later, and may stop and start again. The kernel gives such a port
 * to no outgoing connection, so it stays free in between.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(first, last)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1')
  try {
    await once(probe, 'listening')
  } catch {
    return false
  }
  probe.close()
  await once(probe, 'close')
  return true
}
