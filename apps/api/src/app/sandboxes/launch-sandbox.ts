import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { newSandboxId } from '@atoll/kit/id'
import { toDomainHeaders } from '../../domain/network/header-rules.ts'
import { envdAccessToken } from '../../domain/teams/key.ts'
import { tooManySandboxes } from '../../domain/teams/limits.ts'
import type { TeamLimits } from '../../domain/teams/limits.ts'
import type { NetworkAccessOf } from '../../domain/network/network.ts'
import type { NodeShape } from '../../domain/node.ts'
import { start } from '../../domain/sandboxes/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { OnEndChanged } from '../end-changes.ts'
import type { Ending } from './ending.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { ReadyNames } from './ready-names.ts'

const createTimeoutMs = 60_000
const cleanUpWaitMs = 5_000

/** Launches new sandboxes, from the `creating` record to the `running` one. */
export interface Launching {
  /** Launches a sandbox. An aborted signal cancels the launch and leaves nothing behind. */
  launch(plan: Launch, signal: AbortSignal): Promise<RunningSandbox>
  isCreating(id: string): boolean
  /** Returns counts of creates on a node since this process started. */
  counts(nodeId: string): CreationCounts
}

export interface Launch {
  /** Node for the sandbox. */
  readonly nodeId: string
  readonly spec: SandboxSpec
  readonly limits: TeamLimits
  readonly timeoutSeconds: number
  readonly source: SandboxSource
  readonly envVars: Readonly<Record<string, string>>
}

/** Fields that are in the record from the start. */
export type SandboxSpec = Pick<
  Sandbox,
  | 'teamId'
  | 'templateId'
  | 'buildId'
  | 'alias'
  | 'parent'
  | 'resources'
  | 'metadata'
  | 'secure'
  | 'allowInternetAccess'
  | 'network'
  | 'lifecycle'
>

/** Source of the sandbox on the node. */
export interface SandboxSource {
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
  readonly fleet: Fleet
  readonly ending: Ending
  readonly clock: Clock
  readonly tokenSeed: string
  readonly networkAccessOf: NetworkAccessOf
  readonly processId: string
  /** Throws a fault when the team has used up its disk quota. */
  readonly checkKept: (teamId: string) => Promise<void>
  /** Returns the IDs that are pre-assigned on a node. */
  readonly readyNames: (nodeId: string) => NamesOfNode
  readonly onEndChanged: OnEndChanged
  readonly stopping: AbortSignal
}

type NamesOfNode = Pick<ReadyNames, 'take' | 'forget' | 'giveBack'>

export function createLaunching(ports: LaunchPorts): Launching {
  /** Nodes by the ID of the sandbox. */
  const underway = new Map<string, string>()
  const counts = new Map<string, { succeeded: number; failed: number }>()
  const countsOf = (nodeId: string) => {
    const found = counts.get(nodeId) ?? { succeeded: 0, failed: 0 }
    counts.set(nodeId, found)
    return found
  }
  return {
    isCreating: (id) => underway.has(id),
    counts: (nodeId) => ({
      ...countsOf(nodeId),
      underway: [...underway.values()].filter((other) => other === nodeId).length,
    }),
    async launch(plan, caller) {
      const signal = AbortSignal.any([caller, ports.stopping])
      // Auto-pause keeps files even over the quota, so this check bounds the excess by the concurrency limit.
      if (plan.spec.lifecycle.autoPause) await ports.checkKept(plan.spec.teamId)
      const readyNames = ports.readyNames(plan.nodeId)
      const name = takeName(plan, readyNames)
      if (name !== undefined) {
        const named = await begin(plan, { id: name, isNamed: true }, signal).catch(ifNameIsGone)
        if (named) return named
        readyNames.forget(shapeOf(plan))
      }
      return begin(plan, { id: newSandboxId(), isNamed: false }, signal)
    },
  }

  async function begin(plan: Launch, name: Name, signal: AbortSignal): Promise<RunningSandbox> {
    const { limits } = plan
    const sandbox = toSandbox(plan, name.id, ports)
    underway.set(sandbox.id, plan.nodeId)
    try {
      const isInserted = await ports.store.insert(sandbox, limits.concurrentSandboxes)
      if (!isInserted) {
        if (name.isNamed) ports.readyNames(plan.nodeId).giveBack(name.id, shapeOf(plan))
        throw tooManySandboxes(limits)
      }
      const attempt = { sandbox, signal, isNamed: name.isNamed }
      const running = await bootOrCleanUp(ports, plan, attempt).catch((error: unknown) => {
        if (!isNameGone(error)) countsOf(plan.nodeId).failed += 1
        throw error
      })
      countsOf(plan.nodeId).succeeded += 1
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
function takeName(plan: Launch, readyNames: NamesOfNode): string | undefined {
  const { spec, source, envVars } = plan
  const isUsual =
    spec.secure &&
    source.snapshotId === undefined &&
    Object.keys(envVars).length === 0 &&
    toDomainHeaders(spec.network?.rules ?? {}).length === 0
  return isUsual ? readyNames.take(shapeOf(plan)) : undefined
}

function shapeOf({ spec, source }: Launch): NodeShape {
  return { nodeTemplateId: source.nodeTemplateId, ...spec.resources }
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

interface LaunchAttempt {
  readonly sandbox: Sandbox
  readonly signal: AbortSignal
  readonly isNamed: boolean
}

async function bootOrCleanUp(
  ports: LaunchPorts,
  plan: Launch,
  attempt: LaunchAttempt,
): Promise<RunningSandbox> {
  const deadline = AbortSignal.timeout(createTimeoutMs)
  try {
    const signal = AbortSignal.any([attempt.signal, deadline])
    return await boot(ports, plan, { ...attempt, signal })
  } catch (error) {
    await cleanUp(ports.ending, attempt.sandbox.id)
    if (attempt.signal.aborted) throw createAborted(error)
    throw deadline.aborted ? tookTooLong(error) : error
  }
}

function toSandbox(
  { nodeId, spec, timeoutSeconds }: Launch,
  id: string,
  { clock, processId }: LaunchPorts,
): Sandbox {
  return {
    ...spec,
    id,
    nodeId,
    generation: 1,
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
    keptGeneration: undefined,
    keptId: undefined,
    durableGeneration: undefined,
    storedGeneration: undefined,
    endReason: undefined,
    endedAt: undefined,
  }
}

async function boot(
  ports: LaunchPorts,
  { source, envVars, timeoutSeconds: seconds }: Launch,
  { sandbox, signal, isNamed }: LaunchAttempt,
): Promise<RunningSandbox> {
  const { store, fleet, clock, tokenSeed, onEndChanged } = ports
  const { id, nodeId, generation, resources, secure } = sandbox
  const node = fleet.of(nodeId)
  const accessToken = secure ? envdAccessToken(tokenSeed, id) : undefined
  const { nodeTemplateId, snapshotId } = source
  const wanted = { id, generation, nodeTemplateId, snapshotId, resources, envVars }
  const access = await ports.networkAccessOf(sandbox)
  // Facts of the agent that gets the create: any other one refuses the call.
  const { envdVersion: ofNode } = fleet.member(nodeId).facts() ?? {}
  const envdVersion = source.envdVersion ?? ofNode ?? (await node.envdVersion(signal))
  await node.create({ ...wanted, accessToken, isNamed, ...access }, signal)
  signal.throwIfAborted()
  const running = await store.update(id, (current) => {
    if (current.state !== 'creating') throw endedEarly(current)
    return start(current, { now: clock.now(), seconds, envdVersion })
  })
  if (!running) throw new Error(`the record of sandbox ${id} is missing from the store`)
  onEndChanged(running)
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
  const sandbox = await ending.begin(id, 'could not be started')
  if (!sandbox) return
  await Promise.race([ending.tryFinish(sandbox), sleep(cleanUpWaitMs, undefined, { ref: false })])
}

function createAborted(cause: unknown): Fault {
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
