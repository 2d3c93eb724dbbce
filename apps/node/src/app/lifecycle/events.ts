import { EventEmitter, on } from 'node:events'
import type { Owner } from '../../domain/sandboxes/cell.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'

export type SandboxEvent =
  | { readonly kind: 'started'; readonly sandbox: RunningSandbox }
  | { readonly kind: 'pausing'; readonly sandboxId: string }
  | { readonly kind: 'paused'; readonly sandboxId: string }
  | {
      readonly kind: 'ended'
      readonly sandboxId: string
      readonly generation: number
      readonly reason: string
      readonly isElsewhere?: boolean
    }

export interface SandboxEvents {
  /** Also emitted when a pause has failed and the sandbox keeps running. */
  started(sandbox: RunningSandbox): void
  pausing(sandboxId: string): void
  paused(sandboxId: string): void
  /** `isElsewhere`: another node has the sandbox, and only this node forgets it. */
  ended(owner: Pick<Owner, 'sandboxId' | 'generation'>, reason: string, isElsewhere?: boolean): void
  /** Yields all events from the call on. */
  watch(signal: AbortSignal): AsyncIterable<SandboxEvent>
}

export function createSandboxEvents(
  onEnd: (sandboxId: string, reason: string) => void = () => {},
): SandboxEvents {
  const emitter = new EventEmitter().setMaxListeners(0)
  const emit = (event: SandboxEvent) => emitter.emit('event', event)
  return {
    pausing: (sandboxId) => emit({ kind: 'pausing', sandboxId }),
    paused: (sandboxId) => emit({ kind: 'paused', sandboxId }),
    started: (sandbox) => emit({ kind: 'started', sandbox }),
    ended({ sandboxId, generation = 0 }, reason, isElsewhere) {
      onEnd(sandboxId, reason)
      const event = { kind: 'ended', sandboxId, generation, reason } as const
      emit({ ...event, ...(isElsewhere && { isElsewhere }) })
    },
    watch: (signal) => unwrap(on(emitter, 'event', { signal })),
  }
}

async function* unwrap(source: AsyncIterable<SandboxEvent[]>): AsyncIterable<SandboxEvent> {
  try {
    for await (const events of source) yield* events
  } catch (error) {
    if (!(error instanceof Error && error.name === 'AbortError')) throw error
  }
}
