import { Fault } from '@atoll/kit/fault'

/** Work in the object store. The name identifies what is uploaded, also in later passes. */
export interface StoreTask {
  readonly name: string
  run(): Promise<void>
}

export interface UploadPasses {
  /** Does what is due. Returns whether nothing is left to do. */
  run(signal: AbortSignal): Promise<boolean>
}

interface Refusal {
  readonly failures: number
  readonly notBeforeMs: number
}

const firstDelayMs = 10_000
const maxDelayMs = 15 * 60_000

/**
 * Passes over what this node has to do in the object store. An upload that fails while the store works goes behind all
 * others, with growing delays: contents that the store never accepts keep no other content from it. When the store does
 * not work, the pass ends, and the next one tries all again.
 */
export function createUploadPasses(ports: {
  /** Work that comes before the uploads, in each pass. */
  readonly chores: (signal: AbortSignal) => readonly StoreTask[]
  findUploads(signal: AbortSignal): Promise<readonly StoreTask[]>
  /** Whether the store takes objects at this moment. */
  isStoreWorking(signal: AbortSignal): Promise<boolean>
  nowMs(): number
  onError(error: unknown, name: string): void
}): UploadPasses {
  const { chores, findUploads, isStoreWorking, nowMs, onError } = ports
  const refusals = createRefusals(nowMs)

  async function attempt(task: StoreTask, signal: AbortSignal): Promise<Outcome> {
    if (signal.aborted) return 'stopped'
    try {
      await task.run()
      return 'done'
    } catch (error) {
      if (signal.aborted) return 'stopped'
      onError(error, task.name)
      return isOutage(error) && !(await isStoreWorking(signal)) ? 'stopped' : 'failed'
    }
  }

  return {
    async run(signal) {
      let due: readonly StoreTask[] = []
      const look = async () => void (due = refusals.due(await findUploads(signal)))
      let isDone = true
      for (const task of [...chores(signal), { name: 'uploads', run: look }]) {
        const outcome = await attempt(task, signal)
        if (outcome === 'stopped') return false
        if (outcome === 'failed') isDone = false
      }
      for (const task of due) {
        const outcome = await attempt(task, signal)
        if (outcome === 'stopped') return false
        refusals.note(task, outcome)
      }
      return isDone && refusals.areNone()
    },
  }
}

/** Uploads that failed although the store works. */
function createRefusals(nowMs: () => number) {
  const refusals = new Map<string, Refusal>()
  const failuresOf = ({ name }: StoreTask) => refusals.get(name)?.failures ?? 0
  return {
    areNone: () => refusals.size === 0,
    note(task: StoreTask, outcome: 'done' | 'failed'): void {
      if (outcome === 'done') return void refusals.delete(task.name)
      const failures = failuresOf(task) + 1
      const delayMs = Math.min(firstDelayMs * 2 ** (failures - 1), maxDelayMs)
      refusals.set(task.name, { failures, notBeforeMs: nowMs() + delayMs })
    },
    /** Returns the uploads to try now, and forgets all that are not there any more. The fewest failures come first. */
    due(uploads: readonly StoreTask[]): readonly StoreTask[] {
      const names = new Set(uploads.map(({ name }) => name))
      for (const name of refusals.keys()) if (!names.has(name)) refusals.delete(name)
      return uploads
        .filter(({ name }) => (refusals.get(name)?.notBeforeMs ?? 0) <= nowMs())
        .toSorted((a, b) => failuresOf(a) - failuresOf(b))
    },
  }
}

/** `stopped`: the node stops, or the store does not work. */
type Outcome = 'done' | 'failed' | 'stopped'

function isOutage(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'objects_unavailable'
}
