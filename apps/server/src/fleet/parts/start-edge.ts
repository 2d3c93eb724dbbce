/** Composition root of `atoll edge`: sandbox traffic of a fleet. Any number of edges may run behind a load balancer. */
import { Code, ConnectError } from '@connectrpc/connect'
import { createEdge } from '@atoll/edge'
import type { Edge, FindSigner, Wake, WakeResult } from '@atoll/edge'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { ServerConfig } from '../../config.ts'
import { parseListenAddress, toUrl } from '../../listen-address.ts'
import { observeEdge } from '../../telemetry/access-log.ts'
import { parseDomain } from '../../tls/tls-plan.ts'
import { isAbsent } from '../control/client.ts'
import type { ControlClient } from '../control/client.ts'
import type { IdentityHolder } from '../identity/identity.ts'
import { connectPeer } from '../peers/transport.ts'
import { openEntry } from './entry.ts'
import { openMember } from './member.ts'
import { startPolling } from './polling.ts'
import { createTunnelDial } from './tunnel-dial.ts'

export interface RunningEdge {
  readonly url: string
  close(): Promise<void>
}

const pollMs = 2_000
const callLimitMs = 5_000

export async function startEdgePart(config: ServerConfig, log: Logger): Promise<RunningEdge> {
  await using started = new AsyncDisposableStack()
  const member = await openMember(config, 'edge', log)
  started.defer(() => member.close())
  const { control, identity } = member
  const entry = await openEntry(config, log)
  started.defer(() => entry.close())
  const { ATOLL_DOMAIN: domain, ATOLL_TRUSTED_PROXIES: proxies } = config.server
  const { plan, tls, telemetry } = entry
  const holdMs = config.fleet.ATOLL_FLEET_HOLD_SECONDS * 1000
  const edge = createEdge({
    nodes: [],
    log: log.child({ part: 'edge' }),
    config: { ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX: plan.maxRequestsPerSandbox },
    maxRequests: plan.maxRequests,
    onRequest: observeEdge(config.edge, log, telemetry.onEdgeRequest),
    locate: createLocate(control),
    holdMs,
    findSigner: createFindSigner(control),
    wake: createWake(control),
    domain: domain === undefined ? undefined : parseDomain(domain).hostName,
    isTrustedProxy: proxies?.has ?? (tls && (() => false)),
  })
  started.defer(() => edge.close())
  const nodes = followNodes(edge, { control, identity, log, holdMs })
  started.defer(() => nodes.close())
  await nodes.first
  entry.open({ api: edge.handle, edge })
  const url = toUrl(entry.address)
  log.info({ event: 'edge.start', url, id: identity.current().id })
  const owned = started.move()
  return {
    url,
    async close() {
      await entry.drain()
      await owned.disposeAsync()
    },
  }
}

/** Watches all nodes that the apis list. When no api answers, the edge keeps using the nodes of the last list. */
function followNodes(
  edge: Edge,
  parts: {
    readonly control: ControlClient
    readonly identity: IdentityHolder
    readonly log: Logger
    readonly holdMs: number
  },
) {
  const { control, identity, log, holdMs } = parts
  const known = new Map<string, { readonly address: string; remove(): Promise<void> }>()
  const add = (id: string, text: string): void => {
    const address = parseListenAddress(text)
    if (!address) return
    const { transport, close } = connectPeer({ address, identity, expected: { role: 'node', id } })
    const remove = edge.addNode({
      id,
      transport,
      dial: createTunnelDial({ id, address, identity, holdMs }),
    })
    known.set(id, {
      address: text,
      async remove() {
        close()
        await remove()
      },
    })
  }
  const polling = startPolling('list nodes', pollMs, log, async () => {
    const { nodes } = await control.call((api) => api.listNodes({}, { timeoutMs: callLimitMs }))
    const listed = new Map(nodes.map(({ id, address }) => [id, address]))
    for (const [id, { address, remove }] of known) {
      if (listed.get(id) === address) continue
      known.delete(id)
      await remove()
    }
    for (const [id, address] of listed) if (!known.has(id)) add(id, address)
  })
  return {
    first: polling.first,
    async close() {
      await polling.close()
      for (const { remove } of known.values()) await remove()
    },
  }
}

function createLocate(control: ControlClient) {
  return async (sandboxId: string): Promise<string | undefined> => {
    try {
      const find = control.call((api) =>
        api.locateSandbox({ sandboxId }, { timeoutMs: callLimitMs }),
      )
      return (await find).nodeId
    } catch (error) {
      throw withoutApi(error)
    }
  }
}

function withoutApi(cause: unknown): Fault {
  return new Fault('unavailable', 'api_unreachable', 'No api answers', { cause })
}

const results = ['running', 'not_found', 'forbidden', 'conflict', 'limit'] as const

function createWake(control: ControlClient): Wake {
  return async (request, signal): Promise<WakeResult> => {
    const { sandboxId, port, accessToken, trafficToken } = request
    const message = {
      ...{ sandboxId, port },
      ...(accessToken !== undefined && { accessToken }),
      ...(trafficToken !== undefined && { trafficToken }),
    }
    const reply = await control
      .call((api) => api.wakeSandbox(message, { signal }))
      .catch((error: unknown) => {
        throw isAbsent(error) ? withoutApi(error) : error
      })
    const kind = results.find((result) => result === reply.result) ?? 'conflict'
    return { kind, message: reply.message }
  }
}

function createFindSigner(control: ControlClient): FindSigner {
  return async ({ path, username, operation, signature, expiration }) => {
    const message = { path, username, operation, signature }
    const file = { ...message, ...(expiration !== undefined && { expiration }) }
    try {
      const reply = await control.call((api) => api.findSigner(file, { timeoutMs: callLimitMs }))
      return reply.sandboxId
    } catch (error) {
      if (isAbsent(error)) throw withoutApi(error)
      if (ConnectError.from(error).code !== Code.ResourceExhausted) throw error
      throw new Fault('exhausted', 'too_many_signatures', 'Too many signatures', { cause: error })
    }
  }
}
