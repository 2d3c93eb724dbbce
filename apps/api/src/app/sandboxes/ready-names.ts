import { setTimeout as sleep } from 'node:timers/promises'
import { newSandboxId } from '@atoll/kit/id'
import type { Logger } from '@atoll/kit/log'
import type { NodeShape, SandboxNode } from '../../domain/node.ts'
import type { Fleet, Member } from '../nodes/fleet.ts'

/**
 * IDs that are pre-assigned to sandboxes in the node's warm pool. Such a sandbox already has its ID and token, which
 * saves the longest part of a create. The IDs are an optimization local to this process; a create works with any other
 * ID too.
 */
export interface ReadyNames {
  /** Returns an ID and removes it. Undefined when there is none of this shape. */
  take(shape: NodeShape): string | undefined
  /** Drops all IDs of this shape: if one is gone from the node, older ones most likely are too. */
  forget(shape: NodeShape): void
  /** Returns an unused ID to the list. */
  giveBack(id: string, shape: NodeShape): void
  close(): Promise<void>
}

/** While the node pre-assigns one ID, another is queued for the next pre-warmed sandbox. */
const offersAtOnce = 2
/** More than any warm pool holds; drops the IDs of sandboxes that the node has discarded. */
const keptOfShape = 64
const firstDelayMs = 100
const longestDelayMs = 5_000

function startReadyNames(parts: {
  readonly node: Pick<SandboxNode, 'nameReady'>
  readonly tokenOf: (id: string) => string
  readonly log: Logger
}): ReadyNames {
  const { node, tokenOf, log } = parts
  const closing = new AbortController()
  const { signal } = closing
  const names = new Map<string, string[]>()

  function keep(id: string, shape: NodeShape): void {
    const known = names.get(keyOf(shape)) ?? []
    names.set(keyOf(shape), [...known, id].slice(-keptOfShape))
  }

  async function offer(): Promise<void> {
    let delayMs = firstDelayMs
    while (!signal.aborted) {
      const id = newSandboxId()
      try {
        keep(id, await node.nameReady(id, tokenOf(id), signal))
        delayMs = firstDelayMs
      } catch (error) {
        if (signal.aborted) return
        log.warn(
          { err: error },
          'no identity could be preassigned to a pre-warmed sandbox; creates take longer meanwhile',
        )
        await sleep(delayMs, undefined, { signal }).catch(() => {})
        delayMs = Math.min(delayMs * 2, longestDelayMs)
      }
    }
  }

  const offers = Array.from({ length: offersAtOnce }, offer)
  return {
    // Take the newest: for requests without an ID, the node uses the oldest.
    take: (shape) => names.get(keyOf(shape))?.pop(),
    forget: (shape) => void names.delete(keyOf(shape)),
    giveBack: keep,
    async close() {
      closing.abort()
      await Promise.all(offers)
    },
  }
}

function keyOf({ nodeTemplateId, cpuCount, memoryMb, diskSizeMb }: NodeShape): string {
  return [nodeTemplateId, cpuCount, memoryMb, diskSizeMb].join(' ')
}

/** Starts to pre-assign IDs on each node. */
export function startNamesOfNodes(
  { forEachRegistered, member }: Fleet,
  tokenOf: (id: string) => string,
  log: Logger,
): { readonly of: (nodeId: string) => ReadyNames; close(): Promise<void> } {
  const all = new Map<Member, ReadyNames>()
  const { close } = forEachRegistered((one) => {
    const names = startReadyNames({ node: one.sandboxes, tokenOf, log })
    all.set(one, names)
    return {
      async close() {
        all.delete(one)
        await names.close()
      },
    }
  })
  return {
    close,
    of(nodeId) {
      const names = all.get(member(nodeId))
      if (names) return names
      throw new Error(`no IDs are pre-assigned on node ${nodeId}`)
    },
  }
}
