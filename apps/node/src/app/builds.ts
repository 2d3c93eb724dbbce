import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { Fault } from '@atoll/kit/fault'
import type { BuildRequest } from '../domain/build.ts'
import type { BuildProgress, BuildTemplate, Built } from './build-template.ts'

/** The builds of this node, in turn. */
export interface Builds {
  /** Returns once sandboxes can be made of it. A `BuildError` is the fault of its steps. A failure leaves nothing. */
  build(request: BuildRequest, progress: BuildProgress): Promise<Built>
  /** Succeeds when there is no such template. */
  remove(templateId: string): Promise<void>
  /** Ends those under way. */
  close(): Promise<void>
}

/** Each keeps the processor busy, and those who wait for a sandbox come first. */
const buildsAtOnce = 2

export function createBuilds(ports: {
  readonly buildTemplate: BuildTemplate
  readonly templates: {
    find(templateId: string): object | undefined
    remove(templateId: string): Promise<void>
  }
  /** Removes what was made of it ahead. */
  forget(templateId: string): Promise<void>
}): Builds {
  const { templates } = ports
  const gate = limitConcurrency(buildsAtOnce)
  /** One at a time for each owner, so that nobody takes all places. */
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
        throw new Fault('conflict', 'template_exists', `There is a template ${templateId} already`)
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
      await ports.forget(templateId)
    },

    async close() {
      closing.abort()
      await Promise.allSettled(underway.values())
    },
  }
}
