/** Composition root of `atoll up`: node, api and edge in one process, on one data directory. */
import { mkdir, realpath } from 'node:fs/promises'
import { hostname } from 'node:os'
import { createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import { openStore, startApi } from '@atoll/api'
import type { Api, FirstCredentials } from '@atoll/api'
import { NodeService, SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { createEdge } from '@atoll/edge'
import type { Logger } from '@atoll/kit/log'
import { startBackupSocket } from './backup/backup-socket.ts'
import type { BackupSocket } from './backup/backup-socket.ts'
import type { CaptureParts } from './backup/capture.ts'
import { backupSocketPath } from './backup/socket-path.ts'
import { clientAddresses } from './client-addresses.ts'
import type { ClientAddresses } from './client-addresses.ts'
import type { ServerConfig } from './config.ts'
import { planConnections } from './connection-plan.ts'
import { moveCredentials, saveCredentials } from './credentials.ts'
import { startDashboard } from './dashboard/start.ts'
import { readDescriptorLimit } from './descriptor-limit.ts'
import { startGateway } from './gateway.ts'
import { toUrl } from './listen-address.ts'
import { baseShape, startLocalNode } from './local-node.ts'
import type { StartNode } from './local-node.ts'
import { shutdownStep } from './shutdown-step.ts'
import { observeEdge } from './telemetry/access-log.ts'
import { startTelemetry } from './telemetry/telemetry.ts'
import { openTls } from './tls/open-tls.ts'
import { parseDomain } from './tls/tls-plan.ts'
import type { TlsPlan } from './tls/tls-plan.ts'

export type { StartNode } from './local-node.ts'

export interface ServerParts {
  readonly log: Logger
  /** Called during long work at a first start. */
  readonly progress?: (label: string, fraction: number) => void
  /** Starts a node other than the local one. */
  readonly startNode?: StartNode
  /** Time limit of one shutdown step; for tests. */
  readonly stepLimitMs?: number
}

export interface RunningServer {
  readonly apiUrl: string
  readonly sandboxUrl: string
  /** Absent: no metrics. */
  readonly metricsUrl?: string
  /** Absent: no HTTPS. */
  readonly tls?: TlsPlan
  /** Absent if the dashboard is off. */
  readonly dashboardUrl?: string
  /** Signs in to the dashboard once. */
  readonly signInUrl?: string
  /** Set only at the start that created them. */
  readonly firstCredentials?: FirstCredentials
  /** False when the credentials file is missing or invalid. */
  readonly hasCredentials: boolean
  /** Stops the server, not the sandboxes. Returns how many still run, if the node answers. Never throws. */
  close(): Promise<{ readonly leftRunning?: number | undefined }>
}

/** Time for open requests to finish when the server stops. */
const graceMs = 1_500

export async function startServer(
  config: ServerConfig,
  parts: ServerParts,
): Promise<RunningServer> {
  await using started = new AsyncDisposableStack()
  const { log, progress = () => {}, startNode = startLocalNode, stepLimitMs: limitMs } = parts
  const { ATOLL_DATA_DIR: dataDir, ATOLL_LISTEN, ATOLL_EDGE_LISTEN, ATOLL_DOMAIN } = config.server

  const closing = (step: string, run: () => Promise<unknown>) =>
    started.defer(shutdownStep({ log, limitMs }, step, run))

  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const tls = await openTls(config.server, log.child({ part: 'tls' }))
  if (tls) closing('certificates', () => tls.certificates.close())
  const plan = planConnections(await readDescriptorLimit(), {
    maxConnections: config.server.ATOLL_MAX_CONNECTIONS,
    maxPerClient: config.server.ATOLL_MAX_CONNECTIONS_PER_CLIENT,
    maxRequestsPerSandbox: config.edge.ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX,
    isTls: tls !== undefined,
  })
  const gateway = await startGateway(
    {
      api: ATOLL_LISTEN,
      edge: ATOLL_EDGE_LISTEN,
      tls: tls && { address: tls.plan.listen, certificates: tls.certificates },
      redirect: tls?.redirect,
    },
    plan,
    config.server.ATOLL_TRUSTED_PROXIES?.has,
  )
  closing('gateway', () => gateway.close())
  const renewal = tls?.startRenewal()
  if (renewal) closing('certificate renewal', () => renewal.close())
  const apiUrl = toUrl(gateway.apiAddress)
  const sandboxUrl = toUrl(gateway.sandboxAddress)

  const telemetry = await startTelemetry(config, log.child({ part: 'telemetry' }))
  closing('telemetry', () => telemetry.close())
  // Open the store before the node: an incompatible store is refused before anything changes.
  const store = await openStore(config.api, telemetry.onQuery)
  closing('store', () => store.close())

  const node = await startNode(config.node, {
    log: log.child({ part: 'node' }),
    progress,
    wanted: [baseShape(config)],
    measure: telemetry.measure,
    keyRing: store.keyRing,
  })
  closing('node', () => node.close())
  telemetry.watchNode(node.transport)
  const api = await startApi(config.api, {
    store,
    nodes: [telemetry.measured(node.transport)],
    nodeName: `${hostname()}:${dataDir}`,
    log: log.child({ part: 'api' }),
    onRequest: telemetry.onRequest,
    ...(node.resealRecords && { resealRecords: node.resealRecords }),
    domain: tls?.plan.domain ?? ATOLL_DOMAIN,
    saveCredentials: (made) => saveCredentials(dataDir, { ...made, url: apiUrl, sandboxUrl }),
  })
  closing('api', () => api.close())
  const edge = createEdge({
    nodes: [node.transport],
    log: log.child({ part: 'edge' }),
    config: { ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX: plan.maxRequestsPerSandbox },
    maxRequests: plan.maxRequests,
    onRequest: observeEdge(config.edge, log, telemetry.onEdgeRequest),
    findSigner: api.findSigner,
    wake: api.wake,
    ...ingressOf(config, tls?.plan),
  })
  closing('edge', () => edge.close())
  const hasCredentials = await moveCredentials(dataDir, { url: apiUrl, sandboxUrl })
  const addresses = clientAddresses(
    { apiUrl, sandboxUrl },
    { domain: ATOLL_DOMAIN, tls: tls?.plan },
  )
  const dashboard = await openDashboard(config, {
    tls: tls?.plan,
    ...{ addresses, apiUrl, node, api, log, progress },
  })
  if (dashboard) closing('dashboard', () => dashboard.close())
  const { openCapture } = node
  if (openCapture) {
    const backups = await openBackups(dataDir, { openCapture, copyStore: store.copyTo }, log)
    closing('backups', () => backups.close())
  }
  gateway.open({ api: telemetry.traced(api.handler), edge, dashboard })
  log.info({ event: 'server.start', apiUrl, sandboxUrl, domain: addresses.sandboxDomain, ...plan })

  const owned = started.move()
  return {
    apiUrl,
    sandboxUrl,
    ...(telemetry.metricsAddress && { metricsUrl: `${toUrl(telemetry.metricsAddress)}/metrics` }),
    ...(tls && { tls: tls.plan }),
    hasCredentials,
    ...(dashboard && { dashboardUrl: dashboard.url, signInUrl: dashboard.signInUrl }),
    ...(api.firstCredentials && { firstCredentials: api.firstCredentials }),
    async close() {
      gateway.stop(graceMs)
      let leftRunning: number | undefined
      const count = async () => (leftRunning = await countSandboxes(node.transport))
      await shutdownStep({ log, limitMs }, 'count of sandboxes', count)()
      await owned.disposeAsync()
      log.info({ event: 'server.stop', leftRunning })
      return { leftRunning }
    },
  }
}

async function openBackups(
  dataDir: string,
  parts: Omit<CaptureParts, 'dataDir'>,
  log: Logger,
): Promise<BackupSocket> {
  const real = await realpath(dataDir)
  const socket = backupSocketPath(real)
  return startBackupSocket(socket, { dataDir: real, ...parts }, log.child({ part: 'backup' }))
}

/** Starts the dashboard unless it is off. */
async function openDashboard(
  { server: settings }: ServerConfig,
  parts: {
    readonly apiUrl: string
    readonly addresses: ClientAddresses
    readonly tls: TlsPlan | undefined
    readonly node: { readonly transport: Transport }
    readonly api: Api
    readonly log: Logger
    readonly progress: NonNullable<ServerParts['progress']>
  },
) {
  const { apiUrl, tls } = parts
  const host = settings.ATOLL_DASHBOARD_HOST ?? `ui.${tls?.hostName ?? 'localhost'}`
  if (host === 'off') return undefined
  const port = tls ? tls.domain.slice(tls.hostName.length) : `:${new URL(apiUrl).port || '80'}`
  return startDashboard({
    ...parts,
    ...{ host, dataDir: settings.ATOLL_DATA_DIR },
    url: `${tls ? 'https' : 'http'}://${host}${port}`,
    platformUrl: apiUrl,
    node: parts.node.transport,
    log: parts.log.child({ part: 'dashboard' }),
  })
}

/**
 * Programs in sandboxes get X-Forwarded-* headers if the server is more than a port on this machine: with HTTPS, or behind
 * trusted proxies.
 */
function ingressOf({ server }: ServerConfig, tls: TlsPlan | undefined) {
  const { ATOLL_DOMAIN: domain, ATOLL_TRUSTED_PROXIES: proxies } = server
  return {
    domain: domain === undefined ? undefined : parseDomain(domain).hostName,
    isTrustedProxy: proxies?.has ?? (tls && (() => false)),
  }
}

async function countSandboxes(transport: Transport): Promise<number> {
  const client = createClient(NodeService, transport)
  const { sandboxes } = await client.listSandboxes({}, { timeoutMs: 1_000 })
  return sandboxes.filter(({ state }) => state === SandboxState.RUNNING).length
}
