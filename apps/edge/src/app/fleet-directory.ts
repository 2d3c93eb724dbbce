import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { SandboxSource } from '../domain/sandbox.ts'
import { createDirectory } from './directory.ts'
import type { Directory, NodeDirectory } from './directory.ts'
import { createEntryIndex } from './entries.ts'
import type { Entry } from './entry.ts'

/**
 * Returns the ID of the node that runs the sandbox, or undefined if it does not run. Throws an `api_unreachable` fault
 * while no api answers.
 */
export type Locate = (sandboxId: string) => Promise<string | undefined>

export interface FleetDirectory extends Directory {
  /** Adds a node. Returns a function that removes it. */
  add(nodeId: string, source: SandboxSource): () => Promise<void>
}

/** Time that a request waits for a node agent that restarts. */
const defaultHoldMs = 45_000
/** Time that a request waits for an api. Shorter: without one, unknown IDs would wait too. */
const apiHoldMs = 10_000
const firstPauseMs = 500
const longestPauseMs = 2_000

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

  const findReported = (id: string): Entry | undefined => {
    const known = index.newest(id)
    return known?.isTrusted() && !known.isPausing ? known : undefined
  }
  const search = { holdMs, remote, findReported, closing: closing.signal }
  /** Requests for the same sandbox share one lookup, so that a silent node does not multiply the waiting. */
  const share = (id: string): Promise<Entry | undefined> => {
    const current = lookups.get(id)
    if (current) return current
    const asked = locate ? locateAndFind({ ...search, locate }, id) : askAll(all(), id)
    const lookup = asked.finally(() => lookups.delete(id))
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
      return findReported(id) ?? share(id)
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

interface Search {
  readonly locate: Locate
  readonly holdMs: number
  readonly remote: ReadonlyMap<string, NodeDirectory>
  /** Returns the sandbox if the watch of its node is in sync. */
  readonly findReported: (id: string) => Entry | undefined
  readonly closing: AbortSignal
}

/** Looks a sandbox up on its node. Gives an api and the node time to answer. */
async function locateAndFind(search: Search, id: string): Promise<Entry | undefined> {
  const { locate, holdMs, remote, findReported, closing } = search
  const begin = performance.now()
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      const nodeId = await locate(id)
      return nodeId === undefined ? undefined : await findOn(remote.get(nodeId), id)
    } catch (error) {
      const limitMs = isWithoutApi(error) ? Math.min(apiHoldMs, holdMs) : holdMs
      const isLate = performance.now() > begin + limitMs
      if (!isSilence(error) || closing.aborted || isLate) throw error
    }
    await sleep(pauseMs, undefined, { signal: closing }).catch(() => {}) // closing
    // The watch of its node may be back, also without an api.
    const reported = findReported(id)
    if (reported) return reported
  }
}

function isSilence(error: unknown): boolean {
  return error instanceof Fault && error.kind === 'unavailable'
}

function isWithoutApi(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'api_unreachable'
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
