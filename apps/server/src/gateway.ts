import type { IncomingMessage, RequestListener, ServerOptions, ServerResponse } from 'node:http'
import { buildFilesPath } from '@atoll/contracts/builds/request'
import { edgeServerOptions } from '@atoll/edge'
import type { Edge } from '@atoll/edge'
import type { Dashboard } from './dashboard/dashboard.ts'
import { isLoopback } from './client-address.ts'
import { createConnections } from './connections.ts'
import type { ConnectionLimits, Connections } from './connections.ts'
import { startListener } from './listener.ts'
import type { Listener } from './listener.ts'
import type { ListenAddress } from './listen-address.ts'
import type { Certificates } from './tls/certificates.ts'

/** Listeners of the server: one for API and sandboxes, told apart by header and host, or one each. */
export interface Gateway {
  readonly apiAddress: ListenAddress
  readonly sandboxAddress: ListenAddress
  /** Absent: no HTTPS. */
  readonly tlsAddress?: ListenAddress
  /** Starts to serve; until then every request gets a 503 with Retry-After. */
  open(parts: GatewayParts): void
  /** Accepts no new connections; open requests have `graceMs` to finish. */
  stop(graceMs: number): void
  /** Accepts no new connections. Resolves when the open ones have ended, or after the limit. */
  drain(limitMs: number): Promise<void>
  close(): Promise<void>
}

export interface GatewayParts {
  readonly api: (req: IncomingMessage, res: ServerResponse) => void
  /** Absent: this process serves no sandbox traffic. */
  readonly edge?: Edge | undefined
  /** Absent: there is no dashboard. */
  readonly dashboard?: Dashboard | undefined
}

export interface GatewayAddresses {
  readonly api: ListenAddress
  /** Absent: sandbox traffic uses the address of the API. */
  readonly edge?: ListenAddress | undefined
  /** Absent: no HTTPS. */
  readonly tls?:
    | { readonly address: ListenAddress; readonly certificates: Certificates }
    | undefined
  /** Plain HTTP that redirects to HTTPS. Absent: off. */
  readonly redirect?:
    | { readonly address: ListenAddress; readonly handle: RequestListener }
    | undefined
}

/**
 * Listens before the parts are ready, so that an address in use is reported before the long work of a first start.
 */
export async function startGateway(
  addresses: GatewayAddresses,
  limits: ConnectionLimits,
  isTrustedProxy: (address: string) => boolean = () => false,
): Promise<Gateway> {
  await using started = new AsyncDisposableStack()
  const connections = createConnections(limits, { isExempt: isLoopbackOr(isTrustedProxy) })
  const close = async ({ stop, closed }: Listener) => {
    stop()
    connections.destroyAll()
    await closed
  }
  let parts: GatewayParts | undefined
  const shared = createDispatch(() => parts, addresses.edge !== undefined)

  const apiListener = await startListener(
    { setting: 'ATOLL_LISTEN', address: addresses.api },
    upgradeIf((req) => shared.isForDashboard(req) || shared.isForEdge(req)),
    { connections, handle: shared.handle },
  )
  started.defer(() => close(apiListener))
  const edgeListener = addresses.edge
    ? await startEdgeListener(addresses.edge, { partsOf: () => parts, connections })
    : apiListener
  started.defer(() => close(edgeListener))
  const tlsListener =
    addresses.tls && (await startTlsListener(addresses.tls, { partsOf: () => parts, connections }))
  if (tlsListener) started.defer(() => close(tlsListener))
  const redirectListener =
    addresses.redirect && (await startRedirectListener(addresses.redirect, connections))
  if (redirectListener) started.defer(() => close(redirectListener))
  const listeners = new Set([apiListener, edgeListener, tlsListener ?? apiListener])
  for (const listener of listeners) {
    const hasDashboard = listener === apiListener || listener === tlsListener
    passUpgrades(listener, (req) =>
      hasDashboard && shared.isForDashboard(req) ? parts?.dashboard : parts?.edge,
    )
  }

  const owned = started.move()
  return {
    apiAddress: apiListener.address,
    sandboxAddress: edgeListener.address,
    ...(tlsListener && { tlsAddress: tlsListener.address }),
    open(given) {
      parts = given
    },
    stop(graceMs) {
      redirectListener?.stop()
      for (const { server, stop } of listeners) {
        stop()
        setTimeout(() => server.closeAllConnections(), graceMs).unref()
      }
    },
    drain: (limitMs) => drainAll([...listeners, redirectListener], limitMs),
    close: () => owned.disposeAsync(),
  }
}

async function drainAll(listeners: readonly (Listener | undefined)[], limitMs: number) {
  await Promise.all(listeners.map(async (listener) => listener?.drain(limitMs)))
}

function isLoopbackOr(isTrusted: (address: string) => boolean) {
  return (client: string, address: string) => isLoopback(client) || isTrusted(address)
}

interface SharedParts {
  readonly partsOf: () => GatewayParts | undefined
  readonly connections: Connections
}

function startEdgeListener(
  address: ListenAddress,
  { partsOf, connections }: SharedParts,
): Promise<Listener> {
  return startListener(
    { setting: 'ATOLL_EDGE_LISTEN', address },
    upgradeIf(() => partsOf() !== undefined),
    {
      connections,
      handle(req, res) {
        const parts = partsOf()
        if (parts?.edge) parts.edge.handle(req, res)
        else refuseDuringStart(res)
      },
    },
  )
}

function startRedirectListener(
  { address, handle }: NonNullable<GatewayAddresses['redirect']>,
  connections: Connections,
): Promise<Listener> {
  const place = { setting: 'ATOLL_HTTP_LISTEN', address }
  return startListener(
    place,
    upgradeIf(() => false),
    { connections, handle },
  )
}

/** HTTPS serves everything on one port. */
function startTlsListener(
  { address, certificates }: NonNullable<GatewayAddresses['tls']>,
  parts: SharedParts,
): Promise<Listener> {
  const { isForDashboard, isForEdge, handle } = createDispatch(parts.partsOf, false)
  return startListener(
    { setting: 'ATOLL_TLS_LISTEN', address },
    upgradeIf((req) => isForDashboard(req) || isForEdge(req)),
    { connections: parts.connections, handle, certificates },
  )
}

/** Routes requests on the API's listener to the dashboard, to sandboxes unless they have their own listener, or to the API. */
function createDispatch(partsOf: () => GatewayParts | undefined, isEdgeApart: boolean) {
  const isForDashboard = (req: IncomingMessage) => partsOf()?.dashboard?.claims(req) ?? false
  const isForEdge = (req: IncomingMessage) =>
    !isEdgeApart && !isForDashboard(req) && (partsOf()?.edge?.claims(req) ?? false)
  const handle = (req: IncomingMessage, res: ServerResponse) => {
    const parts = partsOf()
    if (!parts) return refuseDuringStart(res)
    if (isForEdge(req)) return parts.edge?.handle(req, res)
    const isDashboard = isForDashboard(req)
    // Uploads of files to a sandbox may take as long as they need.
    if (!isDashboard || req.method !== 'PUT') limitUpload(req)
    return isDashboard ? parts.dashboard?.handle(req, res) : parts.api(req, res)
  }
  return { isForDashboard, isForEdge, handle }
}

function passUpgrades(
  { server }: Listener,
  targetOf: (req: IncomingMessage) => Pick<Edge, 'upgrade'> | undefined,
): void {
  server.on('upgrade', (req, socket, head) => {
    const target = targetOf(req)
    if (target) target.upgrade(req, socket, head)
    else socket.destroy()
  })
}

function upgradeIf(isWanted: (req: IncomingMessage) => boolean): ServerOptions {
  return {
    ...edgeServerOptions,
    shouldUpgradeCallback: (req) => edgeServerOptions.shouldUpgradeCallback(req) && isWanted(req),
  }
}

function refuseDuringStart(res: ServerResponse): void {
  res.writeHead(503, { 'Content-Type': 'application/json; charset=utf-8', 'Retry-After': '1' })
  res.end(JSON.stringify({ code: 503, message: 'The server is starting; try again in a moment' }))
}

const uploadLimitMs = 300_000
/** Matches the timeout of clients. */
const archiveLimitMs = 3_600_000

/** Limits the time a request takes to arrive. The sandbox host has no such limit; the platform API needs one. */
function limitUpload(req: IncomingMessage): void {
  const isArchive = req.url?.startsWith(`${buildFilesPath}/`) ?? false
  const timer = setTimeout(
    () => {
      if (!req.complete) req.socket.destroy()
    },
    isArchive ? archiveLimitMs : uploadLimitMs,
  )
  timer.unref()
  req.once('close', () => clearTimeout(timer))
}
