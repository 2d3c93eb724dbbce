import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'

export interface PooledServer {
  readonly host: string
  /** Refuses connections to a server that takes no writes. */
  readonly pool: Pool
}

const askAgainMs = 1_000

/**
 * Returns the first server that takes writes. Servers that refuse are asked again every second while others have not
 * answered: a standby may be promoted long before a machine that is gone counts as silent. Throws when all have refused.
 */
export async function findWritable<T extends PooledServer>(servers: readonly T[]): Promise<T> {
  const refusals = new Map<T, string>()
  const found = Promise.withResolvers<T>()
  let isOver = false
  const ask = async (server: T): Promise<void> => {
    try {
      const client = await server.pool.connect()
      client.release()
      found.resolve(server)
    } catch (error) {
      refusals.set(server, `${server.host}: ${messageOf(error)}`)
    }
  }
  const askUntilFound = async (server: T, first: Promise<void>): Promise<void> => {
    await first
    while (!isOver) {
      await sleep(askAgainMs, undefined, { ref: false })
      if (!isOver) await ask(server)
    }
  }
  const firstAnswers = servers.map((server) => {
    const first = ask(server)
    void askUntilFound(server, first)
    return first
  })
  void Promise.all(firstAnswers).then(() =>
    found.reject(new Error(`no server takes writes (${[...refusals.values()].join('; ')})`)),
  )
  try {
    return await found.promise
  } finally {
    isOver = true
  }
}

/** If a host name has several addresses, the connection error has a code but no message. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message || ('code' in error ? String(error.code) : error.name)
}
