import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { newSandboxId } from '@atoll/kit/id'
import { toDomainHeaders } from '../../domain/network/header-rules.ts'
import { envdAccessToken } from '../../domain/teams/key.ts'
import { mayKeep, tooManySandboxes, tooMuchKept } from '../../domain/teams/limits.ts'
import type { TeamLimits } from '../../domain/teams/limits.ts'
import type { ReachOf } from '../../domain/network/network.ts'
import type { NodeShape, SandboxNode } from '../../domain/node.ts'
import { start } from '../../domain/sandboxes/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Ending } from './ending.ts'
import type { ReadyNames } from './ready-names.ts'

const createTimeoutMs = 60_000
const cleanUpWaitMs = 5_000

/** Launches new sandboxes, from the `creating` record to the `running` one. */
export interface Launching {
  /** Launches a sandbox. An aborted signal cancels the launch and leaves nothing behind. */
  launch(plan: Launch, signal: AbortSignal): Promise<RunningSandbox>
  isCreating(id: string): boolean
  /** Returns counts since this process started. */
  counts(): CreationCounts
}

export interface Launch {
  readonly given: Given
  readonly limits: TeamLimits
  readonly timeoutSeconds: number
  readonly content: Content
  readonly envVars: Readonly<Record<string, string>>
}

/** Fields that are in the record from the start. */
export type Given = Pick<
  Sandbox,
  | 'teamId'
  | 'templateId'
  | 'buildId'
  | 'alias'
  | 'resources'
  | 'metadata'
  | 'secure'
  | 'allowInternetAccess'
  | 'network'
  | 'lifecycle'
>

/** Source of the sandbox on the node. */
export interface Content {
  readonly nodeTemplateId: string
  readonly snapshotId: string | undefined
  /** Undefined means the envd version of the node. */
  readonly envdVersion: string | undefined
}

export interface CreationCounts {
  readonly underway: number
  readonly succeeded: number
  readonly failed: number
}

interface LaunchPorts {
  readonly store: SandboxStore
  readonly node: SandboxNode
  readonly ending: Ending
  readonly clock: Clock
  readonly tokenSeed: string
  readonly reachOf: ReachOf
  readonly processId: string
  readonly readyNames: Pick<ReadyNames, 'take' | 'forget' | 'giveBack'>
  readonly onEndChanged: () => void
  readonly stopping: AbortSignal
}

export function createLaunching(ports: LaunchPorts): Launching {
  const underway = new Set<string>()
  const counts = { succeeded: 0, failed: 0 }
  return {
    isCreating: (id) => underway.has(id),
    counts: () => ({ underway: underway.size, ...counts }),
    async launch(plan, caller) {
      const signal = AbortSignal.any([caller, ports.stopping])
      await checkKept(ports.store, plan)
      const name = takeName(plan, ports.readyNames)
      if (name !== undefined) {
        const named = await begin(plan, { id: name, isNamed: true }, signal).catch(ifNameIsGone)
        if (named) return named
        ports.readyNames.forget(shapeOf(plan))
      }
      return begin(plan, { id: newSandboxId(), isNamed: false }, signal)
    },
  }

  async function begin(plan: Launch, name: Name, signal: AbortSignal): Promise<RunningSandbox> {
    const { limits } = plan
    const sandbox = toSandbox(plan, name.id, ports)
    underway.add(sandbox.id)
    try {
      const isIn = await ports.store.insert(sandbox, limits.concurrentSandboxes)
      if (!isIn) {
        if (name.isNamed) ports.readyNames.giveBack(name.id, shapeOf(plan))
        throw tooManySandboxes(limits)
      }
      const birth = { sandbox, signal, isNamed: name.isNamed }
      const running = await bootOrCleanUp(ports, plan, birth).catch((error: unknown) => {
        if (!isNameGone(error)) counts.failed += 1
        throw error
      })
      counts.succeeded += 1
      return running
    } finally {
      underway.delete(sandbox.id)
    }
  }
}

interface Name {
  readonly id: string
  /** Whether the ID is pre-assigned to a pre-warmed sandbox. Another create may have claimed that sandbox since. */
  readonly isNamed: boolean
}

/** Returns the ID of a pre-warmed sandbox that already matches this request, if there is one. */
function takeName(plan: Launch, readyNames: LaunchPorts['readyNames']): string | undefined {
  const { given, content, envVars } = plan
  const isUsual =
    given.secure &&
    content.snapshotId === undefined &&
    Object.keys(envVars).length === 0 &&
    toDomainHeaders(given.network?.rules ?? {}).length === 0
  return isUsual ? readyNames.take(shapeOf(plan)) : undefined
}

function shapeOf({ given, content }: Launch): NodeShape {
  return { nodeTemplateId: content.nodeTemplateId, ...given.resources }
}

/**
 * Ignores `ready_name_gone`. Another create may have claimed the sandbox, and its owner may know the token of this ID,
 * so the ID must not be used.
 */
function ifNameIsGone(error: unknown): undefined {
  if (!isNameGone(error)) throw error
}

function isNameGone(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'ready_name_gone'
}

/**
 * Rejects auto-pausing sandboxes once the team's kept-disk quota is used up. Auto-pause keeps files even over the
 * quota, so this check bounds the excess by the concurrency limit.
 */
async function checkKept(store: SandboxStore, { given, limits }: Launch): Promise<void> {
  if (!given.lifecycle.autoPause) return
  const kept = await store.keptBytes(given.teamId)
  if (!mayKeep(limits, kept, 1)) throw tooMuchKept(limits, kept)
}

interface Birth {
  readonly sandbox: Sandbox
  readonly signal: AbortSignal
  readonly isNamed: boolean
}

async function bootOrCleanUp(
  ports: LaunchPorts,
  plan: Launch,
  birth: Birth,
): Promise<RunningSandbox> {
  const deadline = AbortSignal.timeout(createTimeoutMs)
  try {
    const signal = AbortSignal.any([birth.signal, deadline])
    return await boot(ports, plan, { ...birth, signal })
  } catch (error) {
    await cleanUp(ports.ending, birth.sandbox.id)
    if (birth.signal.aborted) throw givenUp(error)
    throw deadline.aborted ? tookTooLong(error) : error
  }
}

function toSandbox(
  { given, timeoutSeconds }: Launch,
  id: string,
  { clock, processId }: LaunchPorts,
): Sandbox {
  return {
    ...given,
    id,
    state: 'creating',
    timeoutSeconds,
    createdAt: clock.now(),
    holder: processId,
    networkHolder: undefined,
    envdVersion: undefined,
    startedAt: undefined,
    endAt: undefined,
    kept: undefined,
    keptBytes: undefined,
    endReason: undefined,
    endedAt: undefined,
  }
}

async function boot(
  ports: LaunchPorts,
  { content, envVars, timeoutSeconds: seconds }: Launch,
  { sandbox, signal, isNamed }: Birth,
): Promise<RunningSandbox> {
  const { store, node, clock, tokenSeed, onEndChanged } = ports
  const { id, resources, secure } = sandbox
  const accessToken = secure ? envdAccessToken(tokenSeed, id) : undefined
  const { nodeTemplateId, snapshotId } = content
  const wanted = { id, nodeTemplateId, snapshotId, resources, envVars, accessToken, isNamed }
  const reach = await ports.reachOf(sandbox)
  const [envdVersion] = await Promise.all([
    content.envdVersion ?? node.envdVersion(signal),
    node.create({ ...wanted, ...reach }, signal),
  ])
  signal.throwIfAborted()
  const running = await store.update(id, (current) => {
    if (current.state !== 'creating') throw endedEarly(current)
    return start(current, { now: clock.now(), seconds, envdVersion })
  })
  if (!running) throw new Error(`the record of sandbox ${id} is missing from the store`)
  onEndChanged()
  return running
}

function endedEarly({ endReason }: Sandbox): Fault {
  return new Fault(
    'internal',
    'sandbox_create_failed',
    `The sandbox ended during its start: ${endReason ?? 'the reason is unknown'}`,
  )
}

/** Kills the failed sandbox, usually before the caller gets the error; the reconciler finishes slow cleanups. */
async function cleanUp(ending: Ending, id: string): Promise<void> {
  await ending.begin(id, 'could not be started')
  await Promise.race([ending.tryFinish(id), sleep(cleanUpWaitMs, undefined, { ref: false })])
}

function givenUp(cause: unknown): Fault {
  return new Fault(
    'unavailable',
    'sandbox_create_given_up',
    'No sandbox was created: the client disconnected, or the server is shutting down',
    { cause },
  )
}

function tookTooLong(cause: unknown): Fault {
  return new Fault(
    'timeout',
    'sandbox_placement_timeout',
    `The sandbox did not start within ${createTimeoutMs / 1000} seconds; try again later`,
    { cause },
  )
}
