import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { Logger } from '@atoll/kit/log'
import { createRouterTransport } from '@connectrpc/connect'
import type { ServiceImpl, Transport } from '@connectrpc/connect'
import type { Changes } from '../app/changes/changes.ts'
import type { Builds } from '../app/builds/builds.ts'
import type { Installs } from '../app/catalogue/installs.ts'
import type { ListConnections, ListDenied } from '../app/connections/connections.ts'
import type { SandboxEvents } from '../app/lifecycle/events.ts'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { ObjectAccess } from '../app/objects/object-access.ts'
import type { SandboxLogs } from '../app/logs/collect-logs.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import type { SnapshotStore } from '../domain/sandboxes/snapshot.ts'
import { buildMethods } from './builds.ts'
import type { BuildStores } from './builds.ts'
import { catalogueMethods } from './catalogue.ts'
import { checkAddressee } from './check-addressee.ts'
import { changeMethods } from './changes.ts'
import { connectionMethods } from './connections.ts'
import { logMethods } from './logs.ts'
import { measurementMethods } from './measurements.ts'
import type { MeasurementParts } from './measurements.ts'
import { reportFaults } from './report-faults.ts'
import { movingMethods, sandboxMethods, sandboxViewMethods } from './sandboxes.ts'
import { snapshotMethods } from './snapshots.ts'

/** Serves the node protocol in memory. */
export function serveInMemory(parts: ServiceParts, log: Logger): Transport {
  return createRouterTransport((router) => router.service(NodeService, nodeService(parts)), {
    router: { interceptors: [reportFaults(log), checkAddressee(parts.facts)] },
  })
}

export interface ServiceParts extends MeasurementParts {
  readonly sandboxes: Sandboxes
  readonly snapshots: SnapshotStore
  readonly pools: WarmPools
  readonly builds: Builds
  readonly installs: Installs
  readonly files: BuildStores
  readonly logs: SandboxLogs
  readonly changes: Changes
  readonly listConnections: ListConnections
  readonly listDenied: ListDenied
  readonly events: SandboxEvents
  readonly objects: ObjectAccess
}

function nodeService(parts: ServiceParts): ServiceImpl<typeof NodeService> {
  const { sandboxes, pools, objects } = parts
  return {
    ...measurementMethods(parts),
    ...sandboxMethods(sandboxes, pools),
    ...movingMethods(sandboxes, objects),
    ...sandboxViewMethods(sandboxes, parts.events, objects),
    ...snapshotMethods(parts.snapshots, objects, pools),
    ...logMethods(parts.logs, objects),
    ...changeMethods(parts.changes),
    ...connectionMethods(parts.listConnections, parts.listDenied),
    ...buildMethods(parts.builds, parts.files, objects),
    ...catalogueMethods(parts.installs),
  }
}
