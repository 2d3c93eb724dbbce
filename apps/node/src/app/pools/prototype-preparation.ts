import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { shapeKey } from '../../domain/sandboxes/cell.ts'
import type { Shape } from '../../domain/sandboxes/cell.ts'
import type { Prototypes } from './prototypes.ts'

/** Makes prototypes before warm pools are filled from them. A slow prototype is finished in the background. */
export interface PrototypePreparation {
  /**
   * Waits until the prototype is made or turns out to be impossible. Returns false when that is slow; `onSlowEnd` then
   * reports the end.
   */
  isDoneSoon(shape: Shape): Promise<boolean>
  /** Whether the prototype is being made in the background. */
  isSlow(shape: Shape): boolean
  /** Cancels the prototypes of a removed template. */
  removeTemplate(templateId: string): void
  /** Cancels all prototypes. */
  close(): Promise<void>
}

interface Task {
  readonly templateId: string
  readonly aborter: AbortController
  readonly done: Promise<void>
  isSlow: boolean
}

export function createPrototypePreparation(parts: {
  readonly prototypes: Pick<Prototypes, 'ensure'>
  /** Time after which a prototype counts as slow. */
  readonly patienceMs: number
  readonly onSlowEnd: (shape: Shape, failure?: { readonly error: unknown }) => void
}): PrototypePreparation {
  const { prototypes, patienceMs, onSlowEnd } = parts
  const tasks = new Map<string, Task>()
  const closing = new AbortController()

  function begin(shape: Shape): Task {
    const aborter = new AbortController()
    const signal = AbortSignal.any([aborter.signal, closing.signal])
    // Cells whose memory cannot be checkpointed are booted instead.
    const done = prototypes.ensure(shape, { signal }).then(nothing, unlessUnkeepable)
    return { templateId: shape.templateId, aborter, done, isSlow: false }
  }

  function continueInBackground(shape: Shape, task: Task): void {
    const others = [...tasks.values()].filter(({ isSlow }) => isSlow)
    task.isSlow = true
    if (others.length >= slowAtOnce) task.aborter.abort(new Error('too many slow prototypes'))
    const end = (failure?: { readonly error: unknown }) => {
      tasks.delete(shapeKey(shape))
      onSlowEnd(shape, failure)
    }
    void task.done.then(
      () => end(),
      (error: unknown) => end({ error }),
    )
  }

  return {
    async isDoneSoon(shape) {
      const task = begin(shape)
      tasks.set(shapeKey(shape), task)
      const waited = new AbortController()
      const later = sleep(patienceMs, true, { signal: waited.signal })
      try {
        const isLate = await Promise.race([task.done, later])
        if (isLate) continueInBackground(shape, task)
      } finally {
        waited.abort()
        if (!task.isSlow) tasks.delete(shapeKey(shape))
      }
      return !task.isSlow
    },

    isSlow: (shape) => tasks.get(shapeKey(shape))?.isSlow === true,

    removeTemplate(templateId) {
      for (const task of tasks.values()) if (task.templateId === templateId) task.aborter.abort()
    },

    async close() {
      closing.abort()
      await Promise.allSettled([...tasks.values()].map(({ done }) => done))
    },
  }
}

/** Each takes the memory of a sandbox, which no pool accounts for. */
const slowAtOnce = 2

const nothing = () => undefined

function unlessUnkeepable(error: unknown): undefined {
  if (!(error instanceof Fault) || error.kind !== 'invalid') throw error
}
