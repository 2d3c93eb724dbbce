/** Composition root of `atoll node`: runs sandboxes for a fleet. Has no access to the database. */
import { isIP } from 'node:net'
import type { Transport } from '@connectrpc/connect'
import { ensureKeyFile, keyFileOf } from '@atoll/kit/encryption/key-file'
import type { KeyRing } from '@atoll/kit/encryption/key-ring'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { ensureNodeId } from '@atoll/node/state/node-identity'
import type { ServerConfig } from '../../config.ts'
import { formatListenAddress } from '../../listen-address.ts'
import type { ListenAddress } from '../../listen-address.ts'
import { baseShape, startLocalNode } from '../../local-node.ts'
import type { StartNode } from '../../local-node.ts'
import { startTelemetry } from '../../telemetry/telemetry.ts'
import type { Member } from '../identity/authority.ts'
import { forwardNode } from '../peers/forward.ts'
import { startPeerListener } from '../peers/listener.ts'
import type { PeerListener } from '../peers/listener.ts'
import { openMember } from './member.ts'
import type { FleetMember } from './member.ts'
import { startPolling } from './polling.ts'
import { createRemovalSet } from './removals.ts'
import type { RemovalSet } from './removals.ts'
import { createTunnels } from './sandbox-tunnels.ts'

export interface RunningNodePart {
  readonly id: string
  readonly address: ListenAddress
  close(): Promise<void>
}

export interface NodePartOptions {
  readonly log: Logger
  readonly progress?: (label: string, fraction: number) => void
  /** Starts a node other than the local one. */
  readonly startNode?: StartNode
}

const defaultListen = { host: '0.0.0.0', port: 3310 }
const heartbeatMs = 4_000
const callLimitMs = 4_000

export async function startNodePart(
  config: ServerConfig,
  { log, progress = () => {}, startNode = startLocalNode }: NodePartOptions,
): Promise<RunningNodePart> {
  await using started = new AsyncDisposableStack()
  const { ATOLL_FLEET_LISTEN: listen = defaultListen, ATOLL_FLEET_ADDRESS: given } = config.fleet
  checkAddress(listen, given)
  const member = await openMember(config, 'node', log)
  started.defer(() => member.close())
  // Before the first heartbeat: it would send the calls for the other node here.
  await checkNodeId(config.server.ATOLL_DATA_DIR, member)
  const removals = createRemovalSet()
  const early = startEarlyHeartbeats(member, { address: given ?? listen, removals, log })
  started.defer(() => early.close())
  const telemetry = await startTelemetry(config, log.child({ part: 'telemetry' }))
  started.defer(() => telemetry.close())
  const node = await startNode(config.node, {
    ...{ log: log.child({ part: 'node' }), progress, measure: telemetry.measure },
    wanted: [baseShape(config)],
    keyRing: await openOwnKeys(config),
  })
  started.defer(() => node.close())
  telemetry.watchNode(node.transport)
  const listener = await serve(node.transport, { member, listen, removals, log })
  started.defer(() => listener.close())
  const address = given ?? listener.address
  // A late one after the next heartbeat would keep the node out of placement.
  await early.close()
  const heartbeat = startPolling('send a heartbeat', heartbeatMs, log, async () =>
    removals.replace(await sendHeartbeat(member, address, false)),
  )
  started.defer(() => heartbeat.close())
  const { id } = member.identity.current()
  log.info({ event: 'node.serve', id, address: formatListenAddress(address) })
  const owned = started.move()
  return {
    ...{ id, address },
    async close() {
      await listener.drain(config.fleet.ATOLL_FLEET_DRAIN_SECONDS * 1000)
      await owned.disposeAsync()
    },
  }
}

/**
 * Sends heartbeats until the agent answers calls. A start may take minutes, such as on a busy machine or after an upgrade, and
 * the sandboxes of a node that is silent for a minute end.
 */
function startEarlyHeartbeats(
  member: FleetMember,
  parts: { readonly address: ListenAddress; readonly removals: RemovalSet; readonly log: Logger },
): { close(): Promise<void> } {
  const { address, removals, log } = parts
  // Known only once the agent listens.
  if (address.port === 0) return { async close() {} }
  return startPolling('send a heartbeat', heartbeatMs, log, async () =>
    removals.replace(await sendHeartbeat(member, address, true)),
  )
}

/** Returns the IDs of members that were removed. */
async function sendHeartbeat(
  { control }: FleetMember,
  address: ListenAddress,
  isStarting: boolean,
): Promise<readonly string[]> {
  const message = { address: formatListenAddress(address), isStarting }
  const call = control.call((api) => api.heartbeat(message, { timeoutMs: callLimitMs }))
  return (await call).removedIds
}

/** The keys of this node's records. Each node has its own: records do not move between nodes. */
function openOwnKeys({ node }: ServerConfig): Promise<KeyRing> {
  return ensureKeyFile(keyFileOf(node.ATOLL_DATA_DIR, node.ATOLL_ENCRYPTION_KEY_FILE))
}

async function serve(
  node: Transport,
  parts: {
    readonly member: FleetMember
    readonly listen: ListenAddress
    readonly removals: RemovalSet
    readonly log: Logger
  },
): Promise<PeerListener> {
  const { member, listen, removals, log } = parts
  const listener = await startPeerListener({
    ...{ listen, identity: member.identity, log, isRemoved: removals.has },
    mayCall: mayCallNode,
    waits: new Set(['NameReadySandbox']),
    routes: (router) => forwardNode(router, node),
    onTunnel: createTunnels(node, log),
  })
  removals.onChange(() => listener.dropRemoved())
  return listener
}

const edgeMethods = new Set(['GetNode', 'GetSandbox', 'WatchSandboxes'])

function mayCallNode(caller: Member | undefined, method: string): boolean {
  if (caller?.role === 'edge') return edgeMethods.has(method)
  return caller?.role === 'api'
}

/** A certificate that was copied to another data directory would speak for two nodes. */
async function checkNodeId(dataDir: string, { identity }: FleetMember): Promise<void> {
  const nodeId = await ensureNodeId(dataDir)
  const { id } = identity.current()
  if (nodeId === id) return
  const message = `This node has the ID ${nodeId} and the certificate of node ${id}: remove fleet-identity.json from the data directory, and join again`
  throw new Fault('conflict', 'fleet_identity', message)
}

function checkAddress(listen: ListenAddress, given: ListenAddress | undefined): void {
  const isWildcard = isIP(listen.host) !== 0 && /^[0:.]+$/.test(listen.host)
  if (given || !isWildcard) return
  const message =
    'Apis and edges need an address of this node: set ATOLL_FLEET_ADDRESS to host:port, or ATOLL_FLEET_LISTEN to an address of this machine'
  throw new Fault('invalid', 'configuration_refused', message)
}
