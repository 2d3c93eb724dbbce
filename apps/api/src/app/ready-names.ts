import { setTimeout as sleep } from 'node:timers/promises'
import { newSandboxId } from '@atoll/kit/id'
import type { Logger } from '@atoll/kit/log'
import type { NodeShape, SandboxNode } from '../domain/node.ts'

/**
 * Ids that the node has sandboxes ready under: whoever takes one of these finds all told already, and saves the longest
 * part of a create. They are a convenience of this process alone; any other id gets a sandbox too.
 */
export interface ReadyNames {
  /** Each is given once. Undefined when none of this shape is known. */
  take(shape: NodeShape): string | undefined
  /** One was not there any more; then the older ones are hardly. */
  forget(shape: NodeShape): void
  /** It was not used after all. */
  giveBack(id: string, shape: NodeShape): void
  close(): Promise<void>
}

/** While the node has one in its hands, another is there for the sandbox that it makes next. */
const offersAtOnce = 2
/** More than any pool holds: those that the node has thrown away meanwhile are forgotten so. */
const keptOfShape = 64
const firstDelayMs = 100
const longestDelayMs = 5_000

export function startReadyNames(parts: {
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
        log.warn({ err: error }, 'no name could be given to a sandbox ahead')
        await sleep(delayMs, undefined, { signal }).catch(() => {})
        delayMs = Math.min(delayMs * 2, longestDelayMs)
      }
    }
  }

  const offers = Array.from({ length: offersAtOnce }, offer)
  return {
    // The newest: of those that nobody asks for by name the node takes the oldest.
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
