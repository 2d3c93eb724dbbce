import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { TeamLimits } from '../../domain/teams/limits.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { TemplateStore } from '../../domain/template.ts'
import type { Copy, Copying } from './copy-sandbox.ts'
import type { Launch, Launching } from '../sandboxes/launch-sandbox.ts'
import type { Placing } from '../nodes/placing.ts'
import type { LimitsOf } from '../teams/limits.ts'
import { checkTimeout } from '../sandboxes/sandboxes.ts'

/** Forks a running sandbox, which keeps its ID and its end time. Each fork succeeds or fails independently. */
export type ForkSandbox = (request: ForkRequest, signal: AbortSignal) => Promise<Forked[]>

export interface ForkRequest {
  readonly teamId: string
  readonly id: string
  readonly count: number
  readonly timeoutSeconds: number
}

export type Forked = { readonly sandbox: RunningSandbox } | { readonly error: unknown }

interface ForkPorts {
  readonly copying: Copying
  readonly launching: Launching
  readonly templates: TemplateStore
  readonly limitsOf: LimitsOf
  readonly placing: Pick<Placing, 'place' | 'check'>
  readonly log: Logger
}

export function createForkSandbox(ports: ForkPorts): ForkSandbox {
  const { copying, launching, limitsOf, placing, log } = ports
  return async ({ teamId, id, count, timeoutSeconds }, signal) => {
    const limits = await limitsOf(teamId)
    checkTimeout(timeoutSeconds, limits.maxSandboxSeconds)
    checkCount(count, limits)
    await placing.check()
    return copying.copy({ teamId, id, paused, copies: count }, async (copy) => {
      const plan = { ...(await toPlan(ports, copy)), limits, timeoutSeconds }
      const { nodeTemplateId } = plan.source
      const shape = { nodeTemplateId, ...plan.spec.resources }
      const request = { shape, nodeId: copy.source.nodeId }
      const launch = () =>
        placing.place(request, (nodeId) => launching.launch({ ...plan, nodeId }, signal))
      const results = await Promise.allSettled(Array.from({ length: count }, launch))
      return results.map((result) => {
        if (result.status === 'fulfilled') return { sandbox: result.value }
        const error: unknown = result.reason
        log.warn({ err: error, sandboxId: id }, 'a fork of a sandbox could not be started')
        return { error }
      })
    })
  }
}

/** Rejects a count that can never succeed: the source sandbox also counts towards the concurrency limit. */
function checkCount(count: number, { concurrentSandboxes }: TeamLimits): void {
  if (count < concurrentSandboxes) return
  throw new Fault(
    'invalid',
    'invalid_count',
    `count must be less than ${concurrentSandboxes}, the concurrent sandbox limit of the team`,
  )
}

function paused(id: string): Fault {
  return new Fault(
    'conflict',
    'sandbox_paused',
    `Sandbox ${id} is paused: resume it with POST /sandboxes/${id}/connect first`,
  )
}

/** Forks match their source except for ID, tokens and timeout. Environment variables are part of the copy. */
async function toPlan(
  { templates }: ForkPorts,
  { source, snapshotId, keepsMemory }: Copy,
): Promise<Omit<Launch, 'nodeId' | 'limits' | 'timeoutSeconds'>> {
  const build = await templates.findBuildById(source.buildId)
  if (!build) throw new Error(`the template of sandbox ${source.id} is missing from the store`)
  const { teamId, templateId, buildId, alias, resources, metadata } = source
  const { secure, allowInternetAccess, network, lifecycle } = source
  return {
    spec: {
      ...{ teamId, templateId, buildId, alias, resources, metadata },
      parent: { id: source.id, kind: 'fork' },
      ...{ secure, allowInternetAccess, network, lifecycle },
    },
    source: {
      nodeTemplateId: build.nodeTemplateId,
      snapshotId,
      envdVersion: keepsMemory ? source.envdVersion : undefined,
    },
    envVars: {},
  }
}
