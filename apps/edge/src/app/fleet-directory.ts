import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { SandboxSource } from '../domain/sandbox.ts'
import { createDirectory } from './directory.ts'
import type { Directory, NodeDirectory } from './directory.ts'
import { createEntryIndex } from './entries.ts'
import type { Entry } from './entry.ts'

/** Returns the ID of the node that runs the sandbox, or undefined if it does not run. */
export type Locate = (sandboxId: string) => Promise<string | undefined>

export interface FleetDirectory extends Directory {
  /** Adds a node. Returns a function that removes it. */
  add(nodeId: string, source: SandboxSource): () => Promise<void>
}

/** Time that a request waits for a node agent that restarts. */
const defaultHoldMs = 45_000
const pauseMs = 500

/**
 * Running sandboxes of all nodes. Each node has a directory of its own, since two nodes may use the same addresses. With
 * `locate`, a sandbox that no watch has reported is looked up on its own node only, and a silent node is given time.
 */
export function createFleetDirectory(
  sources: readonly SandboxSource[],
  log: Logger,
  locate?: Locate,
  holdMs = defaultHoldMs,
): FleetDirectory {
  const index = createEntryIndex()
  const local = sources.map((source) => createDirectory(source, log, index))
  const remote = new Map<string, NodeDirectory>()
  const lookups = new Map<string, Promise<Entry | undefined>>()
  const closing = new AbortController()
  const all = () => [...local, ...remote.values()]

  const ask = async (id: string): Promise<Entry | undefined> => {
    if (!locate) return askAll(all(), id)
    const until = performance.now() + holdMs
    for (;;) {
      const nodeId = await locate(id)
      if (nodeId === undefined) return undefined
      try {
        return await findOn(remote.get(nodeId), id)
      } catch (error) {
        if (!isSilence(error) || closing.signal.aborted || performance.now() > until) throw error
      }
      await sleep(pauseMs, undefined, { signal: closing.signal }).catch(() => {}) // closing
    }
  }
  /** Requests for the same sandbox share one lookup, so that a silent node does not multiply the waiting. */
  const share = (id: string): Promise<Entry | undefined> => {
    const current = lookups.get(id)
    if (current) return current
    const lookup = ask(id).finally(() => lookups.delete(id))
    lookups.set(id, lookup)
    return lookup
  }
  return {
    get open() {
      return index.connections.open
    },
    find(id) {
      const [only] = local
      if (only && local.length === 1 && remote.size === 0) return only.find(id)
      const known = index.newest(id)
      if (known?.isTrusted() && !known.isPausing) return known
      return share(id)
    },
    add(nodeId, source) {
      const directory = createDirectory(source, log, index)
      remote.set(nodeId, directory)
      return async () => {
        if (remote.get(nodeId) === directory) remote.delete(nodeId)
        await directory.close()
      }
    },
    async close() {
      closing.abort()
      await Promise.all(all().map((directory) => directory.close()))
    },
  }
}

function isSilence(error: unknown): boolean {
  return error instanceof Fault && error.kind === 'unavailable'
}

async function findOn(directory: NodeDirectory | undefined, id: string) {
  if (directory) return directory.find(id)
  throw new Fault('unavailable', 'node_unreachable', 'The edge does not know the node yet')
}

/** A node that does not answer matters only if no other node has the sandbox. */
async function askAll(
  directories: readonly NodeDirectory[],
  id: string,
): Promise<Entry | undefined> {
  const answers = await Promise.allSettled(directories.map(async (one) => one.find(id)))
  let newest: Entry | undefined
  for (const answer of answers) {
    if (answer.status === 'rejected' || !answer.value) continue
    if (!newest || answer.value.generation > newest.generation) newest = answer.value
  }
  if (newest) return newest
  const failure = answers.find((answer) => answer.status === 'rejected')
  if (failure) throw Fault.from(failure.reason)
  return undefined
}
