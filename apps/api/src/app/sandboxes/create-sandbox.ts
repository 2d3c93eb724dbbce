import type { Lifecycle } from '../../domain/sandboxes/lifecycle.ts'
import { checkResources } from '../../domain/teams/limits.ts'
import type { SandboxNetwork } from '../../domain/network/network.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { FindOrInstall } from '../catalogue/find-or-install.ts'
import type { FleetCatalogue } from '../catalogue/fleet-catalogue.ts'
import type { Placing } from '../nodes/placing.ts'
import type { RuleFilling } from '../network/fill-rules.ts'
import type { Launching } from './launch-sandbox.ts'
import type { LimitsOf } from '../teams/limits.ts'
import { checkTimeout } from './sandboxes.ts'

export interface CreateRequest {
  readonly teamId: string
  readonly templateReference: string
  readonly timeoutSeconds: number
  readonly secure: boolean
  readonly allowInternetAccess: boolean | undefined
  readonly network: SandboxNetwork | undefined
  readonly lifecycle: Lifecycle
  readonly metadata: Readonly<Record<string, string>> | undefined
  readonly envVars: Readonly<Record<string, string>>
}

/** Creates a sandbox from a template. An aborted signal cancels the creation and leaves nothing behind. */
export type CreateSandbox = (request: CreateRequest, signal: AbortSignal) => Promise<RunningSandbox>

/** Node.js gives up requests that have no response after 300 s, without a reason that users understand. */
const installLimitMs = 280_000

export function createSandboxCreation(ports: {
  readonly findOrInstall: FindOrInstall
  readonly launching: Launching
  readonly limitsOf: LimitsOf
  readonly rules: Pick<RuleFilling, 'check'>
  readonly placing: Pick<Placing, 'place'>
  readonly catalogueNodes: Pick<FleetCatalogue, 'mayStartOn'>
}): CreateSandbox {
  const { findOrInstall, launching, limitsOf, rules, placing, catalogueNodes } = ports
  return async (request, signal) => {
    const { templateReference, timeoutSeconds, envVars, ...spec } = request
    const limits = await limitsOf(request.teamId)
    checkTimeout(timeoutSeconds, limits.maxSandboxSeconds)
    const template = await findOrInstall({
      ...{ text: templateReference, teamId: request.teamId, signal, installLimitMs },
      isOneNodeEnough: true,
    })
    const {
      id: templateId,
      buildId,
      alias,
      resources,
      nodeId: homeId,
      isDurable,
      ...source
    } = template
    const { snapshotOf } = template
    // The ID of another team's sandbox stays unknown, even if its snapshot is public.
    const parent =
      snapshotOf?.teamId === request.teamId
        ? ({ id: snapshotOf.sandboxId, kind: 'snapshot' } as const)
        : undefined
    checkResources(resources, limits)
    await rules.check(request.teamId, request.network?.rules, 'network.rules')
    const plan = { spec: { ...spec, templateId, buildId, alias, parent, resources }, source }
    const shape = { nodeTemplateId: source.nodeTemplateId, ...resources }
    const suits = (nodeId: string) => catalogueNodes.mayStartOn(nodeId, source.nodeTemplateId)
    return placing.place({ shape, nodeId: homeId, isDurable, suits }, (nodeId) =>
      launching.launch({ ...plan, nodeId, limits, timeoutSeconds, envVars }, signal),
    )
  }
}
