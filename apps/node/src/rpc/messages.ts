/** Converts sandboxes and their events to messages of the node protocol. */
import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type {
  CreateSandboxRequest,
  EgressProxy as ProxyMessage,
  NetworkRules as RulesMessage,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { SandboxEvent } from '../app/lifecycle/events.ts'
import type { Owner } from '../domain/sandboxes/cell.ts'
import { toDomainHeaders, toNames, toProxyAddress } from '../domain/network/network-rules.ts'
import type { EgressProxy, NetworkRules } from '@atoll/contracts/network/rules'
import type { PausedSandbox, RunningSandbox } from '../domain/sandboxes/sandbox.ts'

export function toEvent(event: SandboxEvent) {
  if (event.kind === 'started') return started(event.sandbox)
  const { sandboxId } = event
  if (event.kind === 'paused') return { event: { case: 'paused' as const, value: { sandboxId } } }
  if (event.kind === 'pausing') return pausing(sandboxId)
  const { reason, generation } = event
  return { event: { case: 'ended' as const, value: { sandboxId, reason, generation } } }
}

export function pausing(sandboxId: string) {
  return { event: { case: 'pausing' as const, value: { sandboxId } } }
}

export function started(sandbox: RunningSandbox) {
  return { event: { case: 'started' as const, value: toMessage(sandbox) } }
}

export function toMessage(sandbox: RunningSandbox | PausedSandbox, isPausing = false) {
  const isRunning = 'slot' in sandbox
  const { owner, memory, keptGeneration = 0, keptId = '' } = isRunning ? sandbox.record : sandbox
  return {
    sandboxId: owner.sandboxId,
    generation: owner.generation ?? 0,
    address: isRunning ? sandbox.slot.sandboxAddress : '',
    state: isRunning ? runningState(isPausing) : SandboxState.PAUSED,
    keepsMemory: memory !== undefined,
    ...{ keptGeneration, keptId },
    ...(owner.ingress && {
      ingress: { ...owner.ingress, httpsPorts: [...owner.ingress.httpsPorts] },
    }),
  }
}

export function toQuarantinedMessage(sandboxId: string) {
  return { sandboxId, address: '', state: SandboxState.QUARANTINED, keepsMemory: false }
}

function runningState(isPausing: boolean): SandboxState {
  return isPausing ? SandboxState.PAUSING : SandboxState.RUNNING
}

/** Converts the policy in a request to the plain values stored in the record. */
export function toPolicy({ network, ingress }: Policy): Pick<Owner, 'network' | 'ingress'> {
  return {
    ...(network && { network: toRules(network) }),
    ...(ingress && {
      ingress: {
        httpsPorts: ingress.httpsPorts,
        ...(ingress.trafficAccessToken !== undefined && {
          trafficAccessToken: ingress.trafficAccessToken,
        }),
        ...(ingress.maskRequestHost !== undefined && { maskRequestHost: ingress.maskRequestHost }),
      },
    }),
  }
}

type Policy = Pick<CreateSandboxRequest, 'network' | 'ingress'>

/** Leaves absent fields out of the record, so that records with only addresses keep the older form. */
export function toRules(message: RulesMessage): NetworkRules {
  const { allowOut, denyOut, allowNames, proxy, headerRules } = message
  return {
    allowOut,
    denyOut,
    ...(allowNames.length > 0 && { allowNames: toNames(allowNames) }),
    ...(proxy && { proxy: toProxy(proxy) }),
    ...(headerRules.length > 0 && {
      transforms: { domains: toDomainHeaders(headerRules) },
    }),
  }
}

function toProxy({ address, username, password }: ProxyMessage): EgressProxy {
  return {
    address: toProxyAddress(address),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
  }
}
