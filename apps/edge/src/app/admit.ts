import { Fault } from '@atoll/kit/fault'
import { checkTraffic, credentialsOf, maskTarget } from '../domain/ingress.ts'
import { envdPort, internalPathOf } from '../domain/internal-path.ts'
import type { Refusal } from '../domain/refusal.ts'
import { routeOf } from '../domain/route.ts'
import type { RequestHead, Route, Target } from '../domain/route.ts'
import type { RunningSandbox } from '../domain/sandbox.ts'
import type { FindSigner } from '../domain/signed-file.ts'
import { findRunning } from './find-running.ts'
import type { Caller, FindContext } from './find-running.ts'

export interface Admitted {
  readonly kind: 'admitted'
  readonly target: Target
  readonly sandbox: RunningSandbox
}

export type Admission =
  | Admitted
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'client_gone' }

export interface AdmissionContext extends FindContext {
  /** Absent: URLs without a sandbox ID are refused, signed or not. */
  readonly findSigner?: FindSigner | undefined
  /** Undefined: no limit. */
  readonly maxOpenPerSandbox?: number | undefined
  /** Limit for all sandboxes together. Undefined: no limit. */
  readonly maxOpen?: number | undefined
  /** Domain of sandbox host names, without a port. Undefined: any. */
  readonly domain?: string | undefined
}

/**
 * Checks a request in this order: its target, whether clients may use the path, whether the sandbox runs or can be
 * woken, and whether the caller has access.
 */
export async function admit(
  context: AdmissionContext,
  head: RequestHead,
  watchAbort: Caller['watchAbort'],
): Promise<Admission> {
  const route = routeOf(head, context.domain)
  if (route.kind === 'refused') return refused({ kind: 'bad_request', message: route.message })
  const target = route.kind === 'signed' ? await findTarget(context, route) : route.target
  if ('kind' in target) return refused(target)
  const internalPath = target.port === envdPort ? internalPathOf(target.path) : undefined
  if (internalPath !== undefined) return refused({ kind: 'internal_path', path: internalPath })
  const credentials = credentialsOf(head)
  const found = await findRunning(context, target, { ...credentials, watchAbort })
  if (found.kind !== 'running') return found
  const { sandbox } = found
  const refusal = checkTraffic(sandbox.ingress, target, credentials)
  if (refusal) return refused(refusal)
  return { kind: 'admitted', target: maskTarget(sandbox.ingress, target), sandbox }
}

/** envd verifies the signature itself, so a wrong result here grants no access. */
async function findTarget(
  { findSigner }: AdmissionContext,
  { file, target }: Extract<Route, { kind: 'signed' }>,
): Promise<Target | Refusal> {
  try {
    const sandboxId = await findSigner?.(file)
    return sandboxId === undefined ? { kind: 'unknown_signature' } : { ...target, sandboxId }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    if (error.kind === 'exhausted') return { kind: 'too_many_signatures' }
    if (error.reason === 'api_unreachable') return { kind: 'api_unreachable' }
    throw error
  }
}

/** Exact only if the request attaches to the sandbox in the same turn of the event loop. */
export function checkLimits(
  context: AdmissionContext,
  sandbox: RunningSandbox,
): Refusal | undefined {
  const { maxOpenPerSandbox, maxOpen, directory } = context
  if (maxOpenPerSandbox !== undefined && sandbox.open >= maxOpenPerSandbox) {
    return { kind: 'too_many_requests', sandboxId: sandbox.id, limit: maxOpenPerSandbox }
  }
  if (maxOpen !== undefined && directory.open >= maxOpen) return { kind: 'edge_full' }
  return undefined
}

function refused(refusal: Refusal): Admission {
  return { kind: 'refused', refusal }
}
