import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { Fault } from '@atoll/kit/fault'
import type { BuildRequest } from '../../domain/builds/build.ts'
import type { BuildProgress } from './build-progress.ts'
import type { BuildTemplate, Built } from './build-template.ts'

/** Runs builds and limits their concurrency. */
export interface Builds {
  /**
   * Returns once sandboxes can be created from the template. Throws a `BuildError` for mistakes in the steps. A failure
   * leaves nothing behind.
   */
  build(request: BuildRequest, progress: BuildProgress): Promise<Built>
  /** Succeeds when there is no such template. */
  remove(templateId: string): Promise<void>
  /** Cancels running builds. */
  close(): Promise<void>
}

/** Low, because builds keep the CPU busy and sandbox requests come first. */
const buildsAtOnce = 2

export function createBuilds(ports: {
  readonly buildTemplate: BuildTemplate
  readonly templates: {
    find(templateId: string): object | undefined
    remove(templateId: string): Promise<void>
  }
  /** Removes pre-warmed cells and prototypes of the template. */
  removeCells(templateId: string): Promise<void>
}): Builds {
  const { templates } = ports
  const gate = limitConcurrency(buildsAtOnce)
  /** One build at a time per owner, so that no owner takes all places. */
  const gates = new Map<string, { readonly gate: typeof gate; waiting: number }>()
  const underway = new Map<string, Promise<unknown>>()
  const closing = new AbortController()

  async function inTurn<T>(ownerId: string, task: () => Promise<T>): Promise<T> {
    const own = gates.get(ownerId) ?? { gate: limitConcurrency(1), waiting: 0 }
    gates.set(ownerId, own)
    own.waiting += 1
    try {
      return await own.gate(() => gate(task))
    } finally {
      own.waiting -= 1
      if (own.waiting === 0) gates.delete(ownerId)
    }
  }

  return {
    async build(request, { note, signal: given }) {
      const { templateId } = request.shape
      if (underway.has(templateId) || templates.find(templateId) || templateId === 'base') {
        throw new Fault(
          'conflict',
          'template_exists',
          `Template ${templateId} already exists on this node`,
        )
      }
      const signal = AbortSignal.any([given, closing.signal])
      const building = inTurn(request.ownerId, async () => {
        signal.throwIfAborted()
        return ports.buildTemplate(request, { note, signal })
      }).finally(() => underway.delete(templateId))
      underway.set(templateId, building)
      return building
    },

    async remove(templateId) {
      if (!templates.find(templateId)) return
      await templates.remove(templateId)
      await ports.removeCells(templateId)
    },

    async close() {
      closing.abort()
      await Promise.allSettled(underway.values())
    },
  }
}
