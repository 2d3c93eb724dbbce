import { Fault } from '@atoll/kit/fault'
import type { BuildRequest } from '../../domain/builds/build.ts'
import { createBuildQueue } from './build-queue.ts'
import type { BuildProgress } from './build-progress.ts'
import type { BuildTemplate, Built } from './build-template.ts'

/** Runs builds and limits their concurrency. */
export interface Builds {
  /**
   * Returns once sandboxes can be created from the template. Throws a `BuildError` for mistakes in the steps. A failure
   * leaves nothing behind.
   */
  build(request: BuildRequest, progress: QueuedBuildProgress): Promise<Built>
  /** Succeeds when there is no such template. */
  remove(templateId: string): Promise<void>
  /** Cancels running builds. */
  close(): Promise<void>
}

/** Receiver of the progress of a build that may have to wait. */
export interface QueuedBuildProgress extends BuildProgress {
  /** Called when the build leaves the queue. */
  onStarted(): Promise<void>
}

export function createBuilds(ports: {
  readonly buildTemplate: BuildTemplate
  /** Number of builds that run at a time. */
  readonly concurrentBuilds: number
  readonly templates: {
    find(templateId: string): object | undefined
    remove(templateId: string): Promise<void>
  }
  /** Removes pre-warmed cells and prototypes of the template. */
  removeCells(templateId: string): Promise<void>
}): Builds {
  const { templates } = ports
  const queue = createBuildQueue(ports.concurrentBuilds)
  const underway = new Map<string, Promise<unknown>>()
  const closing = new AbortController()

  function noteWaiting(note: BuildProgress['note'], position: number): void {
    const message = `[base] waiting for other builds: position ${position}; this node runs ${ports.concurrentBuilds} at a time (ATOLL_CONCURRENT_BUILDS)`
    note('base', 'info', message).catch(() => {})
  }

  return {
    async build(request, { note, onStarted, signal: given }) {
      const { templateId } = request.shape
      if (underway.has(templateId) || templates.find(templateId) || templateId === 'base') {
        throw new Fault(
          'conflict',
          'template_exists',
          `Template ${templateId} already exists on this node`,
        )
      }
      const signal = AbortSignal.any([given, closing.signal])
      const queued = {
        ownerId: request.ownerId,
        signal,
        onWaiting: (position: number) => noteWaiting(note, position),
      }
      const building = queue
        .run(queued, async () => {
          await onStarted()
          return ports.buildTemplate(request, { note, signal })
        })
        .finally(() => underway.delete(templateId))
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
