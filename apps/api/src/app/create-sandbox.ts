import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { newSandboxId } from '@atoll/kit/id'
import { envdAccessToken } from '../domain/key.ts'
import type { SandboxNode } from '../domain/node.ts'
import type { Lifecycle } from '../domain/lifecycle.ts'
import { checkResources, tooManySandboxes } from '../domain/limits.ts'
import { start } from '../domain/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../domain/sandbox.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import { parseReference, selectsBuild } from '../domain/template.ts'
import type { Template, TemplateStore } from '../domain/template.ts'
import type { Ending } from './ending.ts'
import type { LimitsOf } from './limits.ts'
import { checkTimeout } from './sandboxes.ts'

const createTimeoutMs = 60_000
const cleanUpWaitMs = 5_000

export interface CreateRequest {
  readonly teamId: string
  readonly templateReference: string
  readonly timeoutSeconds: number
  readonly secure: boolean
  readonly allowInternetAccess: boolean | undefined
  readonly lifecycle: Lifecycle
  readonly metadata: Readonly<Record<string, string>> | undefined
  readonly envVars: Readonly<Record<string, string>>
}

export interface SandboxCreation {
  /** Gives up when the signal says so, and then leaves nothing behind. */
  create(request: CreateRequest, signal: AbortSignal): Promise<RunningSandbox>
  isCreating(id: string): boolean
  /** Since the start of this process. */
  counts(): CreationCounts
}

export interface CreationCounts {
  readonly underway: number
  readonly succeeded: number
  readonly failed: number
}

interface CreationPorts {
  readonly store: SandboxStore
  readonly templates: TemplateStore
  readonly node: SandboxNode
  readonly ending: Ending
  readonly clock: Clock
  readonly limitsOf: LimitsOf
  /** A fault when the node takes no new sandboxes. */
  readonly checkNode: () => Promise<void>
  readonly tokenSeed: string
  readonly processId: string
  readonly onEndChanged: () => void
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal
}

export function createSandboxCreation(ports: CreationPorts): SandboxCreation {
  const underway = new Set<string>()
  const counts = { succeeded: 0, failed: 0 }
  return {
    isCreating: (id) => underway.has(id),
    counts: () => ({ underway: underway.size, ...counts }),
    async create(request, caller) {
      const signal = AbortSignal.any([caller, ports.stopping])
      const limits = await ports.limitsOf(request.teamId)
      checkTimeout(request.timeoutSeconds, limits.maxSandboxSeconds)
      const template = await resolveTemplate(ports.templates, request)
      checkResources(template.resources, limits)
      await ports.checkNode()
      const sandbox = toSandbox(request, template, ports)
      underway.add(sandbox.id)
      try {
        const isIn = await ports.store.insert(sandbox, limits.concurrentSandboxes)
        if (!isIn) throw tooManySandboxes(limits)
        const running = await bootOrCleanUp(ports, request, { sandbox, template, signal }).catch(
          (error: unknown) => {
            counts.failed += 1
            throw error
          },
        )
        counts.succeeded += 1
        return running
      } finally {
        underway.delete(sandbox.id)
      }
    },
  }
}

interface Birth {
  readonly sandbox: Sandbox
  readonly template: Template
  readonly signal: AbortSignal
}

async function bootOrCleanUp(
  ports: CreationPorts,
  request: CreateRequest,
  birth: Birth,
): Promise<RunningSandbox> {
  const deadline = AbortSignal.timeout(createTimeoutMs)
  try {
    const signal = AbortSignal.any([birth.signal, deadline])
    return await boot(ports, request, { ...birth, signal })
  } catch (error) {
    await cleanUp(ports.ending, birth.sandbox.id)
    if (birth.signal.aborted) throw givenUp(error)
    throw deadline.aborted ? tookTooLong(error) : error
  }
}

async function resolveTemplate(
  templates: TemplateStore,
  { templateReference: reference, teamId }: CreateRequest,
): Promise<Template> {
  const { namespace, name, tag } = parseReference(reference)
  const template = namespace === undefined ? await templates.find(name, teamId) : undefined
  if (template && selectsBuild(template, tag)) return template
  throw new Fault(
    'not_found',
    'template_not_found',
    template
      ? `Template ${name} has no tag or build ${tag}`
      : `Template ${reference} was not found: check templateID; "base" is always there`,
  )
}

function toSandbox(
  request: CreateRequest,
  template: Template,
  { clock, processId }: CreationPorts,
): Sandbox {
  return {
    id: newSandboxId(),
    teamId: request.teamId,
    templateId: template.id,
    buildId: template.buildId,
    alias: template.alias,
    state: 'creating',
    resources: template.resources,
    metadata: request.metadata,
    secure: request.secure,
    allowInternetAccess: request.allowInternetAccess,
    lifecycle: request.lifecycle,
    timeoutSeconds: request.timeoutSeconds,
    createdAt: clock.now(),
    holder: processId,
    envdVersion: undefined,
    startedAt: undefined,
    endAt: undefined,
    kept: undefined,
    endReason: undefined,
    endedAt: undefined,
  }
}

async function boot(
  ports: CreationPorts,
  request: CreateRequest,
  { sandbox, template, signal }: Birth,
): Promise<RunningSandbox> {
  const { store, node, clock, tokenSeed, onEndChanged } = ports
  const { id, resources, secure } = sandbox
  const accessToken = secure ? envdAccessToken(tokenSeed, id) : undefined
  const { nodeTemplateId } = template
  const { envVars } = request
  await node.create({ id, nodeTemplateId, resources, envVars, accessToken }, signal)
  const envdVersion = await node.envdVersion(signal)
  signal.throwIfAborted()
  const running = await store.update(id, (current) => {
    if (current.state !== 'creating') throw endedEarly(current)
    return start(current, { now: clock.now(), seconds: request.timeoutSeconds, envdVersion })
  })
  if (!running) throw new Error(`the record of sandbox ${id} has vanished`)
  onEndChanged()
  return running
}

function endedEarly({ endReason }: Sandbox): Fault {
  return new Fault(
    'internal',
    'sandbox_create_failed',
    `The sandbox ended while it was being started: ${endReason ?? 'no reason is known'}`,
  )
}

/** Usually done before the caller hears of the failure; the reconciler goes on with what takes longer. */
async function cleanUp(ending: Ending, id: string): Promise<void> {
  await ending.begin(id, 'could not be started')
  await Promise.race([ending.tryFinish(id), sleep(cleanUpWaitMs, undefined, { ref: false })])
}

function givenUp(cause: unknown): Fault {
  return new Fault(
    'unavailable',
    'sandbox_create_given_up',
    'No sandbox was created: the caller went away, or the server is stopping',
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
