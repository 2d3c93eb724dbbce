import { clientId } from '@atoll/contracts/sandboxes/views'
import type { ListedSandbox, Sandbox, SandboxDetail } from '@atoll/contracts/sandboxes/views'
import type { z } from 'zod'
import { shownState } from '../../domain/sandboxes/sandbox.ts'
import type { StartedSandbox } from '../../domain/sandboxes/sandbox.ts'
import { toParentView } from './lineage.ts'
import { toNetworkView } from '../network.ts'

/** Sandboxes as the platform API returns them; unset fields are omitted. */

/** Returns the tokens and the domain that the team needs to reach a sandbox. */
export type TokensOf = (sandbox: StartedSandbox) => {
  readonly envdAccessToken: string | undefined
  readonly trafficAccessToken: string | undefined
  readonly domain: string | undefined
}

export function toView(sandbox: StartedSandbox, tokensOf: TokensOf): z.infer<typeof Sandbox> {
  const { id, templateId, alias, envdVersion } = sandbox
  const { envdAccessToken, trafficAccessToken, domain } = tokensOf(sandbox)
  return {
    sandboxID: id,
    templateID: templateId,
    clientID: clientId,
    envdVersion,
    ...(alias !== undefined && { alias }),
    ...(envdAccessToken !== undefined && { envdAccessToken }),
    ...(trafficAccessToken !== undefined && { trafficAccessToken }),
    ...(domain !== undefined && { domain }),
  }
}

export function toListed(sandbox: StartedSandbox): z.infer<typeof ListedSandbox> {
  const { endedAt, endReason } = sandbox
  if (sandbox.state !== 'ended') return toCommon(sandbox)
  return {
    ...toCommon(sandbox),
    state: 'ended',
    ...(endedAt && { endedAt: endedAt.toISOString() }),
    ...(endReason !== undefined && { endReason }),
  }
}

function toCommon(sandbox: StartedSandbox) {
  const { alias, resources, metadata } = sandbox
  return {
    sandboxID: sandbox.id,
    templateID: sandbox.templateId,
    clientID: clientId,
    ...(alias !== undefined && { alias }),
    startedAt: sandbox.startedAt.toISOString(),
    endAt: sandbox.endAt.toISOString(),
    cpuCount: resources.cpuCount,
    memoryMB: resources.memoryMb,
    diskSizeMB: resources.diskSizeMb,
    ...(metadata && { metadata }),
    state: shownState(sandbox) ?? 'running',
    envdVersion: sandbox.envdVersion,
  }
}

export function toDetail(
  sandbox: StartedSandbox,
  tokensOf: TokensOf,
): z.infer<typeof SandboxDetail> {
  const { allowInternetAccess, network, lifecycle, parent } = sandbox
  const { envdAccessToken, domain } = tokensOf(sandbox)
  return {
    ...toCommon(sandbox),
    ...(envdAccessToken !== undefined && { envdAccessToken }),
    ...(allowInternetAccess !== undefined && { allowInternetAccess }),
    ...(domain !== undefined && { domain }),
    ...(network && { network: toNetworkView(network) }),
    ...(parent && { parent: toParentView(parent) }),
    lifecycle: {
      autoResume: lifecycle.autoResume,
      onTimeout: lifecycle.autoPause ? 'pause' : 'kill',
    },
  }
}
