/**
 * Brings a paused sandbox back because somebody came to one of its ports. Threats: anybody may come, and must neither
 * learn which sandboxes exist nor spend what a team may run. So only those wake whose creator wanted it, and only for
 * those who could talk to them if they ran.
 */
import { timingSafeEqual } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { hashSecret } from '../domain/key.ts'
import { wakeSeconds } from '../domain/lifecycle.ts'
import { absent, isRunning, isShown } from '../domain/sandbox.ts'
import type { Sandbox, StartedSandbox } from '../domain/sandbox.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { TeamStore } from '../domain/team.ts'
import type { LimitsOf } from './limits.ts'
import type { StartSandbox } from './start-sandbox.ts'

/** Settles when it runs, or never will for this caller. Rejects when `signal` aborts, while the start goes on. */
export type Wake = (request: WakeRequest, signal: AbortSignal) => Promise<WakeResult>

export interface WakeRequest {
  readonly sandboxId: string
  readonly port: number
  /** As the caller sent them. */
  readonly accessToken: string | undefined
  readonly trafficToken: string | undefined
}

export interface WakeResult {
  readonly kind: 'running' | 'not_found' | 'forbidden' | 'conflict' | 'limit'
  /** For the caller's eyes. */
  readonly message?: string
}

interface WakePorts {
  readonly store: SandboxStore
  readonly teams: Pick<TeamStore, 'find'>
  readonly limitsOf: LimitsOf
  readonly start: StartSandbox
  /** What callers must show: undefined where nothing is asked for. */
  readonly tokensOf: (sandbox: StartedSandbox) => {
    readonly envdAccessToken: string | undefined
    readonly trafficAccessToken: string | undefined
  }
  readonly log: Logger
}

const envdPort = 49_983

export function createWake(ports: WakePorts): Wake {
  const { store, teams, limitsOf, start, log } = ports
  return async (request, signal) => {
    const { sandboxId: id } = request
    const sandbox = await store.find(id)
    if (!sandbox || !isShown(sandbox)) return { kind: 'not_found' }
    if (isRunning(sandbox)) return { kind: 'running' }
    const { teamId, timeoutSeconds } = sandbox
    try {
      checkPolicy(sandbox)
      checkCaller(ports, sandbox, request)
      if ((await teams.find(teamId))?.block) throw forbidden('The team of the sandbox is blocked')
      const { maxSandboxSeconds } = await limitsOf(teamId)
      const started = start(id, {
        teamId,
        seconds: wakeSeconds(timeoutSeconds, maxSandboxSeconds),
        boot: false,
        onRunning: (current) => current,
        checkPaused: checkPolicy,
        killed: absent,
      })
      await atMostUntil(signal, started)
      return { kind: 'running' }
    } catch (error) {
      signal.throwIfAborted()
      return toResult(error, id, log)
    }
  }
}

/** What comes back without its memory has lost whatever listened on the port. */
function checkPolicy(sandbox: Sandbox): void {
  const { id, state, lifecycle, kept } = sandbox
  if (state === 'snapshotting') return
  if (!lifecycle.autoResume || kept === 'files') throw absent(id)
}

function checkCaller(ports: WakePorts, sandbox: StartedSandbox, request: WakeRequest): void {
  const { envdAccessToken, trafficAccessToken } = ports.tokensOf(sandbox)
  const [wanted, given, header] =
    request.port === envdPort
      ? [envdAccessToken, request.accessToken, 'X-Access-Token']
      : [trafficAccessToken, request.trafficToken, 'E2B-Traffic-Access-Token']
  if (wanted === undefined || (given !== undefined && isSame(wanted, given))) return
  throw forbidden(`The sandbox is paused, and is woken only with its token in ${header}`)
}

/** Takes the same time whatever is given. */
function isSame(wanted: string, given: string): boolean {
  return timingSafeEqual(Buffer.from(hashSecret(wanted)), Buffer.from(hashSecret(given)))
}

function forbidden(message: string): Fault {
  return new Fault('forbidden', 'wake_forbidden', message)
}

async function atMostUntil(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const onAbort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  try {
    await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Callers who merely came by hear nothing of what went wrong inside. */
function toResult(error: unknown, id: string, log: Logger): WakeResult {
  const { kind, reason, message } = Fault.from(error)
  if (kind === 'not_found') return { kind: 'not_found' }
  if (kind === 'forbidden') return { kind: 'forbidden', message }
  if (kind === 'exhausted') return { kind: 'limit', message }
  if (kind === 'conflict' && reason !== 'sandbox_memory_lost') return { kind: 'conflict', message }
  log.warn({ err: error, sandboxId: id }, 'a sandbox could not be woken')
  return { kind: 'not_found' }
}
