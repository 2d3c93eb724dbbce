import { Fault } from '@atoll/kit/fault'
import type { Credentials } from '../domain/ingress.ts'
import type { Refusal } from '../domain/refusal.ts'
import type { Target } from '../domain/route.ts'
import type { RunningSandbox } from '../domain/sandbox.ts'
import type { WakeResult } from '../domain/wake.ts'
import type { Directory } from './directory.ts'
import type { Waking } from './waking.ts'

export interface FindPorts {
  readonly directory: Directory
  /** Absent: what does not run stays as it is. */
  readonly waking?: Waking | undefined
  /** How long one request waits for its sandbox. */
  readonly wakeLimitMs?: number | undefined
}

/** Whoever waits. */
export interface Caller extends Credentials {
  /** Aborts when the caller is gone. To be let go of, since listening costs; therefore made only where one waits. */
  leaving(): Disposable & { readonly signal: AbortSignal }
}

export type Finding =
  | { readonly kind: 'running'; readonly sandbox: RunningSandbox }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'left' }

const defaultLimitMs = 60_000
const mostRounds = 3

/** The sandbox that runs, or runs again after it was woken for this caller. */
export async function findRunning(
  ports: FindPorts,
  target: Target,
  caller: Caller,
): Promise<Finding> {
  const known = await look(ports.directory, target.sandboxId)
  if (known.kind !== 'refused' || known.refusal.kind !== 'sandbox_not_found') return known
  return ports.waking ? wakeAndFind(ports, ports.waking, { target, caller }) : known
}

async function wakeAndFind(
  { directory, wakeLimitMs = defaultLimitMs }: FindPorts,
  waking: Waking,
  { target, caller }: { readonly target: Target; readonly caller: Caller },
): Promise<Finding> {
  using left = caller.leaving()
  const late = AbortSignal.timeout(wakeLimitMs)
  const signal = AbortSignal.any([left.signal, late])
  const { sandboxId, port } = target
  const { accessToken, trafficToken } = caller
  try {
    // It may be paused again before it is reached, but not for ever.
    for (let round = 0; round < mostRounds; round += 1) {
      const result = await waking.wake({ sandboxId, port, accessToken, trafficToken }, signal)
      if (result.kind !== 'running') return { kind: 'refused', refusal: toRefusal(result, target) }
      const found = await look(directory, sandboxId)
      if (found.kind === 'running') return left.signal.aborted ? { kind: 'left' } : found
    }
  } catch (error) {
    if (left.signal.aborted) return { kind: 'left' }
    if (!late.aborted) throw error
  }
  return { kind: 'refused', refusal: toRefusal({ kind: 'conflict' }, target) }
}

async function look(directory: Directory, sandboxId: string): Promise<Finding> {
  try {
    const sandbox = await directory.find(sandboxId)
    if (sandbox) return { kind: 'running', sandbox }
    return { kind: 'refused', refusal: { kind: 'sandbox_not_found', sandboxId } }
  } catch (error) {
    if (!(error instanceof Fault) || error.kind !== 'unavailable') throw error
    return { kind: 'refused', refusal: { kind: 'node_unreachable' } }
  }
}

function toRefusal({ kind, message }: WakeResult, { sandboxId }: Target): Refusal {
  switch (kind) {
    case 'forbidden':
      return {
        kind: 'forbidden',
        sandboxId,
        title: `Sandbox ${sandboxId} is paused`,
        message: message ?? 'The sandbox is paused, and this request may not wake it',
      }
    case 'conflict':
      return {
        kind: 'in_transition',
        sandboxId,
        message: message ?? 'The sandbox is being paused or resumed; try again in a moment',
      }
    case 'limit':
      return {
        kind: 'sandbox_limit',
        sandboxId,
        message: message ?? 'The sandbox is paused, and its team runs as many as it may',
      }
    case 'running':
    case 'not_found':
      return { kind: 'sandbox_not_found', sandboxId }
    default:
      return kind satisfies never
  }
}
