import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import { NodeService, SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type {
  Ingress as IngressMessage,
  Sandbox,
  WatchSandboxesResponse,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import { openIngress } from '../domain/ingress.ts'
import type { Ingress } from '../domain/ingress.ts'
import type {
  DialSandbox,
  SandboxChange,
  SandboxLocation,
  SandboxSource,
} from '../domain/sandbox.ts'

const requestTimeoutMs = 5_000

/** Reads running sandboxes through the node protocol. `dial`: the edge reaches them only through their node. */
export function nodeSandboxSource(transport: Transport, dial?: DialSandbox): SandboxSource {
  const client = createClient(NodeService, transport)
  return {
    async get(id, signal) {
      try {
        const options = { signal, timeoutMs: requestTimeoutMs }
        const { sandbox } = await client.getSandbox({ sandboxId: id }, options)
        const isPaused = sandbox?.state === SandboxState.PAUSED
        return isPaused ? undefined : sandbox && toLocation(sandbox, dial)
      } catch (error) {
        if (ConnectError.from(error).code === Code.NotFound) return undefined
        throw new Fault('unavailable', 'node_unreachable', 'The node does not answer', {
          cause: error,
        })
      }
    },

    async *watch(signal) {
      for await (const message of client.watchSandboxes({}, { signal })) {
        const change = toChange(message, dial)
        if (change) yield change
      }
    },
  }
}

function toLocation(sandbox: Sandbox, dial: DialSandbox | undefined): SandboxLocation {
  const { sandboxId, generation, address, ingress, state } = sandbox
  return {
    id: sandboxId,
    generation,
    address,
    dial,
    ingress: ingress ? toIngress(ingress) : openIngress,
    isPausing: state === SandboxState.PAUSING,
  }
}

function toIngress({ trafficAccessToken, maskRequestHost, httpsPorts }: IngressMessage): Ingress {
  return {
    trafficToken: trafficAccessToken,
    maskHost: maskRequestHost,
    httpsPorts: new Set(httpsPorts),
  }
}

/** Returns undefined for an unknown event, which a newer node may send. */
function toChange(
  { event }: WatchSandboxesResponse,
  dial: DialSandbox | undefined,
): SandboxChange | undefined {
  if (event.case === 'started') return { kind: 'started', sandbox: toLocation(event.value, dial) }
  if (event.case === 'ended') return { kind: 'ended', id: event.value.sandboxId }
  if (event.case === 'pausing') return { kind: 'pausing', id: event.value.sandboxId }
  if (event.case === 'paused') return { kind: 'ended', id: event.value.sandboxId }
  if (event.case === 'synced') return { kind: 'synced' }
  return undefined
}
