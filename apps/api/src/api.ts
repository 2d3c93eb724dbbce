import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FirstCredentials } from './app/bootstrap.ts'
import { startSampling } from './app/metrics/sampling.ts'
import { createDescribeKey } from './app/teams/describe-key.ts'
import type { DescribeKey } from './app/teams/describe-key.ts'
import { createFindSigner } from './app/sandboxes/find-signer.ts'
import type { FindSigner } from './app/sandboxes/find-signer.ts'
import { createWake } from './app/sandboxes/wake.ts'
import type { Wake } from './app/sandboxes/wake.ts'
import { startBuilds } from './composition/builds.ts'
import { startCatalogue } from './composition/catalogue.ts'
import { registerAll, startCore } from './composition/core.ts'
import type { ApiParts } from './composition/core.ts'
import { createLogParts } from './composition/logs.ts'
import { startFleet } from './composition/fleet.ts'
import type { FleetCalls, StartedFleet } from './composition/fleet.ts'
import { startMoves } from './composition/moves.ts'
import { startNetwork } from './composition/network.ts'
import { createRoutes } from './composition/routes.ts'
import { createSandboxAccess } from './composition/sandbox-access.ts'
import { startSandboxes } from './composition/sandboxes.ts'
import { startSnapshots } from './composition/snapshots.ts'
import type { ApiConfig } from './config.ts'
import { trackRequests } from './http/server/track.ts'

export type { FirstCredentials } from './app/bootstrap.ts'
export type { ResealRecords } from './app/encryption/rotate.ts'
export type { QueryRecord } from './db/query-record.ts'
export type { RequestRecord } from './http/server/request-record.ts'
export type { FleetCalls } from './composition/fleet.ts'
export { openStore } from './composition/store.ts'
export { copySqliteFile } from './db/sqlite.ts'
export { endMissingSandboxes } from './db/store-copy.ts'

export interface Api {
  /** Request handler for the caller's HTTP server. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void
  /** Set only on the start that created the credentials. */
  readonly firstCredentials?: FirstCredentials
  /** Used by the edge, which has no sandbox tokens. */
  readonly findSigner: FindSigner
  /** Used by the edge when a request arrives for a sandbox that is not running. */
  readonly wake: Wake
  /** Used by the dashboard, which signs in with an API key. */
  readonly describeKey: DescribeKey
  /** Used by the edges and nodes of a fleet. Absent in `atoll up`. */
  readonly fleet?: FleetCalls
  /** Stops the API but no sandbox. Finishes open requests and cancels creates in progress. */
  close(): Promise<void>
}

const drainLimitMs = 10_000

/** Creates and starts the platform API; `close` stops its parts in reverse order. */
export async function startApi(config: ApiConfig, parts: ApiParts): Promise<Api> {
  await using started = new AsyncDisposableStack()
  const own = <Part extends { close(): Promise<void> }>(part: Part): Part =>
    started.adopt(part, () => part.close())

  const { core, firstCredentials } = own(await startCore(config, parts))
  const { stores, fleet, placing, liveApis, clock, log, limitsOf } = core
  const remote: StartedFleet | undefined = parts.fleet && own(await startFleet(core, parts.fleet))
  if (remote) await registerAll(core.fleet)
  const network = own(startNetwork(core))
  const access = createSandboxAccess(core.tokenSeed, network.rules, parts.domain)
  const { catalogue, findOrInstall, nodes: catalogueNodes } = own(startCatalogue(core))
  const sandboxes = own(startSandboxes({ core, network, access, findOrInstall, catalogueNodes }))
  remote?.useRecovery(sandboxes.recoverResumes)
  own(startMoves(core, sandboxes))
  const snapshots = own(startSnapshots(core, sandboxes))
  const builds = own(startBuilds(core, { findOrInstall, catalogue }))
  const { logs, startDeletion } = createLogParts(core)

  const server = createRoutes({
    ...{ core, network, access, sandboxes, snapshots, builds, catalogue, logs },
    fleet: parts.fleet &&
      remote && { membership: remote.calls, forget: remote.forget, ...parts.fleet },
  })
  started.defer(() => server.close())
  await server.ready()
  const requests = trackRequests((request, response) => server.routing(request, response))
  started.defer(async () => {
    sandboxes.cancelCreates()
    await requests.drain(drainLimitMs)
  })
  // Recover from a crash before the first request; an unreachable node does not prevent the start.
  await sandboxes.reconciled
  const { usage } = stores.background
  own(startSampling({ teams: stores.teamMetrics, usage, clock, fleet, liveApis, log }))
  own(startDeletion())

  const { start } = sandboxes
  const { tokensOf, envdTokenOf } = access
  const { sandboxes: store, teams, keys } = stores
  const owned = started.move()
  return {
    handler: requests.handler,
    findSigner: createFindSigner({ store, tokenOf: envdTokenOf }),
    wake: createWake({ store, teams, limitsOf, placing, clock, start, tokensOf, log }),
    describeKey: createDescribeKey({ keys, teams, limitsOf }),
    ...(firstCredentials && { firstCredentials }),
    ...(remote && { fleet: remote.calls }),
    close: () => owned.disposeAsync(),
  }
}
