import { Fault } from '@atoll/kit/fault'
import type { Credentials } from '../domain/ingress.ts'
import type { Refusal } from '../domain/refusal.ts'
import type { Target } from '../domain/route.ts'
import type { RunningSandbox } from '../domain/sandbox.ts'
import type { WakeResult } from '../domain/wake.ts'
import type { Directory } from './directory.ts'
import type { SharedWakes } from './shared-wakes.ts'

export interface FindContext {
  readonly directory: Directory
  /** Absent: paused sandboxes are not resumed. */
  readonly wakes?: SharedWakes | undefined
  /** Time limit of one request. */
  readonly wakeLimitMs?: number | undefined
}

export interface Caller extends Credentials {
  /** Aborts when the client disconnects. Created only for requests that wait, because the listeners cost time. */
  watchAbort(): Disposable & { readonly signal: AbortSignal }
}

export type Finding =
  | { readonly kind: 'running'; readonly sandbox: RunningSandbox }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'client_gone' }

const defaultLimitMs = 60_000
const maxAttempts = 3

/** Finds the running sandbox, and resumes it for this caller if it is paused. */
export async function findRunning(
  ports: FindContext,
  target: Target,
  caller: Caller,
): Promise<Finding> {
  const known = await lookUp(ports.directory, target.sandboxId)
  if (known.kind !== 'refused' || known.refusal.kind !== 'sandbox_not_found') return known
  return ports.wakes ? wakeAndFind(ports, ports.wakes, { target, caller }) : known
}

async function wakeAndFind(
  { directory, wakeLimitMs = defaultLimitMs }: FindContext,
  wakes: SharedWakes,
  { target, caller }: { readonly target: Target; readonly caller: Caller },
): Promise<Finding> {
  using clientAbort = caller.watchAbort()
  const timeout = AbortSignal.timeout(wakeLimitMs)
  const signal = AbortSignal.any([clientAbort.signal, timeout])
  const { sandboxId, port } = target
  const { accessToken, trafficToken } = caller
  try {
    // The sandbox may be paused again before the lookup, so the wake is repeated, with a limit.
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      const result = await wakes.wake({ sandboxId, port, accessToken, trafficToken }, signal)
      if (result.kind !== 'running') return { kind: 'refused', refusal: toRefusal(result, target) }
      const found = await lookUp(directory, sandboxId)
      if (found.kind === 'running')
        return clientAbort.signal.aborted ? { kind: 'client_gone' } : found
    }
  } catch (error) {
    if (clientAbort.signal.aborted) return { kind: 'client_gone' }
    if (!timeout.aborted) throw error
  }
  return { kind: 'refused', refusal: toRefusal({ kind: 'conflict' }, target) }
}

async function lookUp(directory: Directory, sandboxId: string): Promise<Finding> {
  try {
    const sandbox = await directory.find(sandboxId)
    if (sandbox) return { kind: 'running', sandbox }
    return { kind: 'refused', refusal: { kind: 'sandbox_not_found', sandboxId } }
  } catch (error) {
    if (!(error instanceof Fault) || error.kind !== 'unavailable') throw error
    const kind = error.reason === 'api_unreachable' ? 'api_unreachable' : 'node_unreachable'
    return { kind: 'refused', refusal: { kind } }
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
        message:
          message ??
          'The sandbox is paused, and its team has reached its limit of running sandboxes. Kill or pause another sandbox',
      }
    case 'unavailable':
      return { kind: 'api_unreachable' }
    case 'running':
    case 'not_found':
      return { kind: 'sandbox_not_found', sandboxId }
    default:
      return kind satisfies never
  }
}
