/**
 * Resumes a paused sandbox when a request reaches one of its ports. Threats: any client may send requests, and must
 * neither learn which sandboxes exist nor use up a team's quota. Therefore only sandboxes with auto-resume wake, and
 * only for clients that would have access if the sandbox were running.
 */
import { timingSafeEqual } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import { hashSecret } from '../../domain/teams/key.ts'
import { wakeSeconds } from '../../domain/sandboxes/lifecycle.ts'
import { secondsLeft } from '../../domain/sandboxes/sandbox-move.ts'
import { absent, isRunning, isShown } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox, StartedSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { TeamStore } from '../../domain/teams/team.ts'
import { createMoveWaits } from '../moves/wait-for-move.ts'
import type { Placing } from '../nodes/placing.ts'
import type { LimitsOf } from '../teams/limits.ts'
import type { StartSandbox } from './start-sandbox.ts'

/**
 * Resolves when the sandbox is running or cannot run for this client. Rejects when `signal` aborts; the start
 * continues.
 */
export type Wake = (request: WakeRequest, signal: AbortSignal) => Promise<WakeResult>

export interface WakeRequest {
  readonly sandboxId: string
  readonly port: number
  /** Tokens from the client's request. */
  readonly accessToken: string | undefined
  readonly trafficToken: string | undefined
}

export interface WakeResult {
  readonly kind: 'running' | 'not_found' | 'forbidden' | 'conflict' | 'limit'
  /** Safe to show to the client. */
  readonly message?: string
}

interface WakePorts {
  readonly store: SandboxStore
  readonly teams: Pick<TeamStore, 'find'>
  readonly limitsOf: LimitsOf
  readonly placing: Pick<Placing, 'conditionOf'>
  readonly clock: Clock
  readonly start: StartSandbox
  /** Tokens that clients must send; undefined where none is required. */
  readonly tokensOf: (sandbox: StartedSandbox) => {
    readonly envdAccessToken: string | undefined
    readonly trafficAccessToken: string | undefined
  }
  readonly log: Logger
}

const envdPort = 49_983

export function createWake(ports: WakePorts): Wake {
  const { store, teams, limitsOf, start, clock, log } = ports
  const moves = createMoveWaits(ports)
  return async (request, signal) => {
    const { sandboxId: id } = request
    // The sandbox runs on by itself after a move, for all callers.
    await atMostUntil(signal, moves.wait(id))
    const sandbox = await store.find(id)
    if (!sandbox || !isShown(sandbox)) return { kind: 'not_found' }
    if (isRunning(sandbox)) return { kind: 'running' }
    const { teamId, timeoutSeconds } = sandbox
    try {
      checkPolicy(sandbox)
      checkCaller(ports, sandbox, request)
      if ((await teams.find(teamId))?.block) throw forbidden('The team of the sandbox is blocked')
      const { maxSandboxSeconds } = await limitsOf(teamId)
      const length = wakeSeconds(timeoutSeconds, maxSandboxSeconds)
      const started = start(id, {
        teamId,
        seconds: Math.max(length, secondsLeft(sandbox, clock.now())),
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

/** Rejects sandboxes without kept memory: after a boot from files, nothing listens on the port. */
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

/** Compares in constant time. */
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

/** Hides internal errors from unauthenticated clients. */
function toResult(error: unknown, id: string, log: Logger): WakeResult {
  const { kind, reason, message } = Fault.from(error)
  if (kind === 'not_found') return { kind: 'not_found' }
  if (kind === 'forbidden') return { kind: 'forbidden', message }
  if (kind === 'exhausted') return { kind: 'limit', message }
  if (kind === 'conflict' && reason !== 'sandbox_memory_lost') return { kind: 'conflict', message }
  log.warn({ err: error, sandboxId: id }, 'traffic could not resume a sandbox')
  return { kind: 'not_found' }
}
