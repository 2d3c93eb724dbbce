import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { operations } from '@atoll/contracts/operations'
import { systemClock } from '@atoll/kit/clock'
import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { Transport } from '@connectrpc/connect'
import { createAccount } from './app/teams/account.ts'
import { createAdmin } from './app/teams/admin.ts'
import { createAuthenticate } from './app/teams/auth.ts'
import { createFirstTeam, ensureBaseTemplate, ensureTokenSeed } from './app/bootstrap.ts'
import type { FirstCredentials } from './app/bootstrap.ts'
import { createCopying } from './app/snapshots/copy-sandbox.ts'
import { createSandboxCreation } from './app/sandboxes/create-sandbox.ts'
import { createDeleteTemplate } from './app/templates/delete-template.ts'
import { createEnding } from './app/sandboxes/ending.ts'
import { createExpiry } from './app/sandboxes/expire.ts'
import { createFindSigner } from './app/sandboxes/find-signer.ts'
import type { FindSigner } from './app/sandboxes/find-signer.ts'
import { forgetLogs } from './app/logs/forget-logs.ts'
import { createForkSandbox } from './app/snapshots/fork-sandbox.ts'
import { createRuleFilling } from './app/network/fill-rules.ts'
import { createKeys } from './app/teams/keys.ts'
import { createLaunching } from './app/sandboxes/launch-sandbox.ts'
import { startLease } from './app/lease.ts'
import { createLimitsOf } from './app/teams/limits.ts'
import { createLogs } from './app/logs/logs.ts'
import { startLoop } from './app/loop.ts'
import { createMetrics } from './app/metrics/metrics.ts'
import { createNetworkChanges } from './app/network/network.ts'
import { createNodes } from './app/nodes.ts'
import { createOwnTemplates } from './app/templates/own-templates.ts'
import { createPausing } from './app/sandboxes/pause-sandbox.ts'
import { createRefreshSecrets } from './app/secrets/refresh-secrets.ts'
import { createSecrets } from './app/secrets/secrets.ts'
import { createRateLimiter } from './app/teams/rate-limits.ts'
import { startReadyNames } from './app/sandboxes/ready-names.ts'
import { reconcileSandboxes } from './app/sandboxes/reconcile.ts'
import { startSampling } from './app/metrics/sampling.ts'
import { createSandboxes } from './app/sandboxes/sandboxes.ts'
import { createSelectTeam } from './app/teams/select-team.ts'
import { createSettle } from './app/sandboxes/settle.ts'
import { settleNetworks } from './app/network/settle-networks.ts'
import { createSnapshots } from './app/snapshots/snapshots.ts'
import { createStartSandbox } from './app/sandboxes/start-sandbox.ts'
import { sweepSnapshots } from './app/snapshots/sweep-snapshots.ts'
import { createTemplateTags } from './app/templates/template-tags.ts'
import { createTemplates } from './app/templates/templates.ts'
import { createTransitions } from './app/sandboxes/transitions.ts'
import { createWake } from './app/sandboxes/wake.ts'
import type { Wake } from './app/sandboxes/wake.ts'
import { startWatch } from './app/sandboxes/watch.ts'
import { createWeigh } from './app/snapshots/weigh.ts'
import { startBuilding } from './building.ts'
import { configuredLimits, storeLocation } from './config.ts'
import type { ApiConfig } from './config.ts'
import { readProcessId } from './db/process-id.ts'
import { checkStoreIdentity } from './db/store-identity.ts'
import { openStores } from './db/stores.ts'
import type { Stores } from './db/stores.ts'
import { envdAccessToken, trafficAccessToken } from './domain/teams/key.ts'
import { ingressOf, rulesOf } from './domain/network/network.ts'
import type { ReachOf } from './domain/network/network.ts'
import type { Sandbox } from './domain/sandboxes/sandbox.ts'
import { addAccountRoutes } from './http/teams/account.ts'
import { addAdminRoutes } from './http/teams/admin.ts'
import { addKeyRoutes } from './http/teams/keys.ts'
import { addLogRoutes } from './http/logs.ts'
import { addMetricRoutes } from './http/metrics.ts'
import { addNetworkRoutes } from './http/network.ts'
import { addNodeRoutes } from './http/nodes.ts'
import { addLifecycleRoutes } from './http/sandboxes/sandbox-lifecycle.ts'
import { addSandboxRoutes } from './http/sandboxes/sandboxes.ts'
import { addSecretRoutes } from './http/secrets.ts'
import type { TokensOf } from './http/sandboxes/sandbox-view.ts'
import { createServer, refuseOtherMethods } from './http/server/server.ts'
import { addServiceRoutes } from './http/service.ts'
import { addSnapshotRoutes } from './http/snapshots.ts'
import { addTagRoutes } from './http/templates/template-tags.ts'
import { addTemplateRoutes } from './http/templates/templates.ts'
import { trackRequests } from './http/server/track.ts'
import { connectLogs } from './nodes/connect-logs.ts'
import { connectNode } from './nodes/connect-node.ts'

export type { FirstCredentials } from './app/bootstrap.ts'

export interface ApiParts {
  /** Store from `openStore`; the caller closes it. If absent, the API opens and closes its own. */
  readonly store?: Stores
  /** Transport for `NodeService`. The node must not list sandboxes before it has adopted those of its predecessor. */
  readonly node: Transport
  /** Identifies the node: only processes with the same node name may share a store. */
  readonly nodeName?: string
  readonly log: Logger
  readonly clock?: Clock
  /** Saves the first credentials where the operator can find them; called before they are in the store. */
  readonly saveCredentials?: (credentials: FirstCredentials) => Promise<void>
}

export interface Api {
  /** Request handler for the caller's HTTP server. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void
  /** Set only on the start that created the credentials. */
  readonly firstCredentials?: FirstCredentials
  /** Used by the edge, which has no sandbox tokens. */
  readonly findSigner: FindSigner
  /** Used by the edge when a request arrives for a sandbox that is not running. */
  readonly wake: Wake
  /** Stops the API but no sandbox. Finishes open requests and cancels creates in progress. */
  close(): Promise<void>
}

const drainLimitMs = 10_000
const settleLimitMs = 5_000

/**
 * Opens and migrates the store. Call it before a node starts: the store of a newer release or of another installation
 * is rejected before anything has changed.
 */
export async function openStore(config: ApiConfig): Promise<Stores> {
  const stores = await openStores(storeLocation(config))
  try {
    await checkStoreIdentity(config.ATOLL_DATA_DIR, stores.settings)
    return stores
  } catch (error) {
    await stores.close()
    throw error
  }
}

/** Creates and starts the platform API; `close` stops its parts in reverse order. */
export async function startApi(config: ApiConfig, parts: ApiParts): Promise<Api> {
  await using started = new AsyncDisposableStack()
  const { log, clock = systemClock } = parts
  const stores = parts.store ?? (await openStore(config))
  if (!parts.store) started.defer(() => stores.close())
  const { sandboxes: store, templates, keys, teams } = stores

  const firstCredentials = await stores.exclusively(() =>
    createFirstTeam({ teams, clock }, async (credentials) => parts.saveCredentials?.(credentials)),
  )
  await ensureBaseTemplate({ templates, clock }, baseResources(config))
  const tokenSeed = await ensureTokenSeed(stores.settings)

  const processId = await readProcessId(config.ATOLL_DATA_DIR)
  const holder = { processId, node: parts.nodeName ?? '' }
  const lease = await stores.exclusively(() =>
    startLease(holder, { leases: stores.leases, clock, log }),
  )
  started.defer(() => lease.close())

  const node = connectNode(parts.node)
  const ending = createEnding({ store, node, clock, log })
  started.defer(() => atMost(settleLimitMs, ending.settle()))
  const transitions = createTransitions({ store })
  started.defer(() => atMost(settleLimitMs, transitions.settle()))
  const limitsOf = createLimitsOf(teams, configuredLimits(config))
  const settle = createSettle({ store, node, clock, limitsOf })
  const weigh = createWeigh(node)
  const transitionPorts = { store, node, clock, transitions, settle, limitsOf, weigh, processId }
  const pausing = createPausing(transitionPorts)
  const expiry = startLoop('expiry', createExpiry({ store, ending, pausing, clock, log }), log)
  started.defer(() => expiry.close())

  const nodes = createNodes({ node, statuses: stores.nodeStatuses, clock })
  const stopping = new AbortController()
  const onEndChanged = () => expiry.nudge()
  const tokenOf = ({ id, secure }: { id: string; secure: boolean }) =>
    secure ? envdAccessToken(tokenSeed, id) : undefined
  const filling = createRuleFilling(stores.secrets)
  const ingressTo = (sandbox: Pick<Sandbox, 'id' | 'network'>) =>
    ingressOf(sandbox, trafficAccessToken(tokenSeed, sandbox.id))
  const reachOf: ReachOf = async (sandbox) => ({
    network: await filling.fill(sandbox.teamId, rulesOf(sandbox)),
    ingress: ingressTo(sandbox),
  })
  const tokensOf: TokensOf = (sandbox) => ({
    envdAccessToken: tokenOf(sandbox),
    trafficAccessToken: ingressTo(sandbox).trafficAccessToken,
  })
  const start = createStartSandbox({
    ...transitionPorts,
    ending,
    tokenOf,
    reachOf,
    onEndChanged,
  })
  const rules = { store, templates, ending, clock, limitsOf, onEndChanged }
  const sandboxes = createSandboxes({ ...rules, start })
  const readyNames = startReadyNames({
    node,
    tokenOf: (id) => envdAccessToken(tokenSeed, id),
    log,
  })
  started.defer(() => readyNames.close())
  const launching = createLaunching({
    ...rules,
    node,
    readyNames,
    tokenSeed,
    reachOf,
    processId,
    stopping: stopping.signal,
  })
  const checkNode = nodes.checkAccepts
  const creating = { templates, launching, limitsOf, rules: filling, checkNode }
  const create = createSandboxCreation(creating)

  const { leases, snapshots } = stores
  const copying = createCopying({ ...transitionPorts, snapshots, log, onEndChanged })
  const fork = createForkSandbox({ copying, launching, templates, limitsOf, checkNode, log })
  const sweeper = startLoop(
    'sweep snapshots',
    (signal) => sweepSnapshots({ snapshots, node, copying, leases, clock, processId }, signal),
    log,
  )
  started.defer(() => sweeper.close())
  const building = startBuilding({
    ...{ stores, node: parts.node, clock, log, processId, tokenSeed, limitsOf, checkNode },
  })
  started.defer(() => building.close())
  const isUnderway = (id: string) => launching.isCreating(id) || transitions.isUnderway(id)
  const onUnknown = createUnknownReport(log)
  const reconcilePorts = {
    ...{ store, node, ending, settle, clock, leases, processId, isUnderway, onUnknown },
  }
  const reconciler = startLoop(
    'reconcile',
    (signal) => reconcileSandboxes(reconcilePorts, signal),
    log,
  )
  started.defer(() => reconciler.close())
  const changes = createNetworkChanges({ store, node, rules: filling, processId, log })
  const networks = startLoop(
    'settle networks',
    () => settleNetworks({ store, changes, leases, clock, processId, log }),
    log,
  )
  started.defer(() => networks.close())
  const watch = startWatch({ node, ending, log, onLost: () => reconciler.nudge() })
  started.defer(() => watch.close())

  const server = createServer(log)
  started.defer(() => server.close())
  const authenticate = createAuthenticate({
    keys,
    teams,
    users: stores.users,
    clock,
    log,
    rates: createRateLimiter(config.ATOLL_RATE_LIMITS ?? new Map(), clock),
    adminToken: config.ATOLL_ADMIN_TOKEN,
  })
  addServiceRoutes(server, { probe: () => teams.isEmpty() })
  addSandboxRoutes(server, { authenticate, sandboxes, create, tokensOf })
  addLifecycleRoutes(server, { authenticate, sandboxes, pausing, tokensOf })
  addNetworkRoutes(server, { authenticate, changes, rules: filling })
  const snapshotPorts = { snapshots, templates, teams, copying, clock }
  addSnapshotRoutes(server, {
    authenticate,
    snapshots: createSnapshots(snapshotPorts),
    fork,
    tokensOf,
  })
  addTagRoutes(server, { authenticate, tags: createTemplateTags({ templates, clock }) })
  const selectTeam = createSelectTeam(teams)
  const listed = createTemplates({ store: templates, node })
  addTemplateRoutes(server, {
    authenticate,
    templates: listed,
    own: createOwnTemplates({ templates, builds: stores.builds, clock }),
    selectTeam,
    remove: createDeleteTemplate({
      ...snapshotPorts,
      onDeleted: () => building.onTemplateDeleted(),
    }),
  })
  const limitBytes = config.ATOLL_MAX_BUILD_FILES_MB * 1024 * 1024
  building.addRoutes(server, { authenticate, selectTeam, templates: listed, limitBytes })
  const teamKeys = createKeys({ store: keys, clock })
  addKeyRoutes(server, { authenticate, keys: teamKeys })
  const onChanged = createRefreshSecrets({ store, changes, log })
  const secrets = createSecrets({ store: stores.secrets, onChanged, clock })
  addSecretRoutes(server, { authenticate, secrets })
  const { accessTokens: tokens, users } = stores
  const account = createAccount({ teams, tokens, keys: teamKeys, clock })
  addAccountRoutes(server, { authenticate, account })
  const configured = configuredLimits(config)
  const admin = createAdmin({ teams, users, sandboxes: store, ending, clock, configured })
  addAdminRoutes(server, { authenticate, admin, keys: teamKeys })
  addNodeRoutes(server, { authenticate, nodes, counts: launching.counts })
  const metricPorts = { teams: stores.teamMetrics, usage: stores.usage, clock }
  addMetricRoutes(server, { authenticate, metrics: createMetrics(metricPorts) })
  const logNode = connectLogs(parts.node)
  addLogRoutes(server, { authenticate, logs: createLogs({ store, node: logNode, clock }) })
  refuseOtherMethods(server, operations)
  await server.ready()

  const requests = trackRequests((request, response) => server.routing(request, response))
  started.defer(async () => {
    stopping.abort()
    await requests.drain(drainLimitMs)
  })
  // Recover from a crash before the first request; an unreachable node does not prevent the start.
  await reconciler.first
  const sampling = startSampling({ ...metricPorts, node, log })
  started.defer(() => sampling.close())
  const { logOwners: owners } = stores
  const forgetting = startLoop(
    'forget logs',
    (signal) => forgetLogs({ node: logNode, owners }, signal),
    log,
  )
  started.defer(() => forgetting.close())
  const owned = started.move()
  return {
    handler: requests.handler,
    findSigner: createFindSigner({ store, tokenOf: (id) => envdAccessToken(tokenSeed, id) }),
    wake: createWake({ store, teams, limitsOf, start, tokensOf, log }),
    ...(firstCredentials && { firstCredentials }),
    close: () => owned.disposeAsync(),
  }
}

/** Logs each sandbox once, because the reconciler finds it again every few seconds. */
function createUnknownReport(log: Logger): (sandboxId: string) => void {
  const reported = new Set<string>()
  return (sandboxId) => {
    if (reported.has(sandboxId)) return
    reported.add(sandboxId)
    log.warn(
      { event: 'sandbox.unknown', sandboxId },
      'the node keeps a paused sandbox that the store does not know; it is left alone',
    )
  }
}

function baseResources(config: ApiConfig) {
  return {
    cpuCount: config.ATOLL_BASE_CPU_COUNT,
    memoryMb: config.ATOLL_BASE_MEMORY_MB,
    diskSizeMb: config.ATOLL_BASE_DISK_SIZE_MB,
  }
}

async function atMost(limitMs: number, work: Promise<void>): Promise<void> {
  await Promise.race([work, sleep(limitMs, undefined, { ref: false })])
}
