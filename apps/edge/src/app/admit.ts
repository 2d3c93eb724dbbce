import { Fault } from '@atoll/kit/fault'
import { checkTraffic, credentialsOf, maskTarget } from '../domain/ingress.ts'
import { envdPort, internalPathOf } from '../domain/internal-path.ts'
import type { Refusal } from '../domain/refusal.ts'
import { routeOf } from '../domain/route.ts'
import type { RequestHead, Route, Target } from '../domain/route.ts'
import type { RunningSandbox } from '../domain/sandbox.ts'
import type { FindSigner } from '../domain/signed-file.ts'
import { findRunning } from './find-running.ts'
import type { Caller, FindPorts } from './find-running.ts'

export interface Admitted {
  readonly kind: 'admitted'
  readonly target: Target
  readonly sandbox: RunningSandbox
}

export type Admission =
  | Admitted
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'left' }

export interface AdmissionRules extends FindPorts {
  /** Absent: URLs that name no sandbox are refused, signed or not. */
  readonly findSigner?: FindSigner | undefined
  /** Undefined: no limit. */
  readonly maxOpenPerSandbox?: number | undefined
  /** To all sandboxes together. Undefined: no limit. */
  readonly maxOpen?: number | undefined
}

/**
 * Decides in this order: where to, whether that path may be reached at all, whether the sandbox runs or is woken, and
 * whether the caller may come in.
 */
export async function admit(
  rules: AdmissionRules,
  head: RequestHead,
  leaving: Caller['leaving'],
): Promise<Admission> {
  const route = routeOf(head)
  if (route.kind === 'refused') return refused({ kind: 'bad_request', message: route.message })
  const target = route.kind === 'signed' ? await findTarget(rules, route) : route.target
  if ('kind' in target) return refused(target)
  const internalPath = target.port === envdPort ? internalPathOf(target.path) : undefined
  if (internalPath !== undefined) return refused({ kind: 'internal_path', path: internalPath })
  const credentials = credentialsOf(head)
  const found = await findRunning(rules, target, { ...credentials, leaving })
  if (found.kind !== 'running') return found
  const { sandbox } = found
  const barred = checkTraffic(sandbox.ingress, target, credentials)
  if (barred) return refused(barred)
  return { kind: 'admitted', target: maskTarget(sandbox.ingress, target), sandbox }
}

/** Envd checks the signature itself, so a wrong answer here opens nothing. */
async function findTarget(
  { findSigner }: AdmissionRules,
  { file, target }: Extract<Route, { kind: 'signed' }>,
): Promise<Target | Refusal> {
  try {
    const sandboxId = await findSigner?.(file)
    return sandboxId === undefined ? { kind: 'unknown_signature' } : { ...target, sandboxId }
  } catch (error) {
    if (error instanceof Fault && error.kind === 'exhausted') return { kind: 'too_many_signatures' }
    throw error
  }
}

/** Exact only if the pass attaches to the sandbox in the same turn of the event loop. */
export function lackOfRoom(rules: AdmissionRules, sandbox: RunningSandbox): Refusal | undefined {
  const { maxOpenPerSandbox, maxOpen, directory } = rules
  if (maxOpenPerSandbox !== undefined && sandbox.open >= maxOpenPerSandbox) {
    return { kind: 'too_many_requests', sandboxId: sandbox.id, limit: maxOpenPerSandbox }
  }
  if (maxOpen !== undefined && directory.open >= maxOpen) return { kind: 'edge_full' }
  return undefined
}

function refused(refusal: Refusal): Admission {
  return { kind: 'refused', refusal }
}
