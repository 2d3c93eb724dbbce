import { operations } from '@atoll/contracts/operations'
import type { FastifyInstance } from 'fastify'
import type { Logs } from '../app/logs/logs.ts'
import { createMetrics } from '../app/metrics/metrics.ts'
import { createMovesOfNode } from '../app/moves/moves-of-node.ts'
import { createAccount } from '../app/teams/account.ts'
import { createAdmin } from '../app/teams/admin.ts'
import { createAuthenticate } from '../app/teams/auth.ts'
import type { Authenticate } from '../app/teams/auth.ts'
import { createKeys } from '../app/teams/keys.ts'
import { createRateLimiter } from '../app/teams/rate-limits.ts'
import { createSelectTeam } from '../app/teams/select-team.ts'
import type { Catalogue } from '../app/catalogue/catalogue.ts'
import { createDeleteTemplate } from '../app/templates/delete-template.ts'
import { createOwnTemplates } from '../app/templates/own-templates.ts'
import { createTemplateTags } from '../app/templates/template-tags.ts'
import { createTemplates } from '../app/templates/templates.ts'
import { configuredLimits } from '../config.ts'
import { createListConnections } from '../app/inspections/connections.ts'
import { createListDeniedSandboxes } from '../app/inspections/denied-sandboxes.ts'
import { createReadTimeline } from '../app/inspections/timeline.ts'
import { createReadLineage } from '../app/inspections/lineage.ts'
import { createFileChanges } from '../app/inspections/file-changes.ts'
import { addEncryptionRoutes } from '../http/encryption.ts'
import { addFleetRoutes } from '../http/fleet.ts'
import type { FleetAdministration } from '../http/fleet.ts'
import { addLogRoutes } from '../http/logs.ts'
import { addMetricRoutes } from '../http/metrics.ts'
import { addNetworkRoutes } from '../http/network.ts'
import { addNodeRoutes } from '../http/nodes.ts'
import { addTimelineRoutes } from '../http/sandboxes/timeline.ts'
import { addLineageRoutes } from '../http/sandboxes/lineage.ts'
import { addInspectionRoutes } from '../http/sandboxes/inspections.ts'
import { addLifecycleRoutes } from '../http/sandboxes/sandbox-lifecycle.ts'
import { addSandboxRoutes } from '../http/sandboxes/sandboxes.ts'
import { addSecretRoutes } from '../http/secrets.ts'
import { createServer, refuseOtherMethods } from '../http/server/server.ts'
import { addServiceRoutes } from '../http/service.ts'
import { addSnapshotRoutes } from '../http/snapshots.ts'
import { addAccountRoutes } from '../http/teams/account.ts'
import { addAdminRoutes } from '../http/teams/admin.ts'
import { addKeyRoutes } from '../http/teams/keys.ts'
import { addCatalogueRoutes } from '../http/templates/catalogue.ts'
import { addTagRoutes } from '../http/templates/template-tags.ts'
import { addTemplateRoutes } from '../http/templates/templates.ts'
import type { Builds } from './builds.ts'
import type { Core } from './core.ts'
import type { Network } from './network.ts'
import type { SandboxAccess } from './sandbox-access.ts'
import type { SandboxParts } from './sandboxes.ts'
import type { SnapshotParts } from './snapshots.ts'

interface RouteParts {
  readonly core: Core
  readonly network: Network
  readonly access: SandboxAccess
  readonly sandboxes: SandboxParts
  readonly snapshots: SnapshotParts
  readonly builds: Builds
  readonly catalogue: Catalogue
  readonly logs: Logs
  /** Absent in `atoll up`. */
  readonly fleet: FleetAdministration | undefined
}

/** Creates the HTTP server with all routes of the API. */
export function createRoutes(parts: RouteParts): FastifyInstance {
  const { core } = parts
  const server = createServer(core.log, core.onRequest)
  const authenticate = createAuthentication(core)
  addServiceRoutes(server, { probe: () => core.stores.teams.isEmpty() })
  addAllSandboxRoutes(server, parts, authenticate)
  addAllTemplateRoutes(server, parts, authenticate)
  addAllTeamRoutes(server, parts, authenticate)
  const { nodes, clock, stores } = core
  addEncryptionRoutes(server, { authenticate, rotation: core.rotation })
  const movesOf = createMovesOfNode({ store: stores.sandboxes, nodes })
  const { counts } = parts.sandboxes.launching
  addNodeRoutes(server, { authenticate, nodes, counts, movesOf })
  addFleetRoutes(server, authenticate, parts.fleet)
  const metrics = createMetrics({ teams: stores.teamMetrics, usage: stores.usage, clock })
  addMetricRoutes(server, { authenticate, metrics })
  addLogRoutes(server, { authenticate, logs: parts.logs })
  refuseOtherMethods(server, operations)
  return server
}

function createAuthentication({ stores, config, clock, log, liveApis }: Core): Authenticate {
  const { keys, teams, users, rates: store } = stores
  const limits = config.ATOLL_RATE_LIMITS ?? new Map()
  const rates = createRateLimiter(limits, { store, countApis: liveApis.count, clock, log })
  liveApis.onJoin(rates.share)
  return createAuthenticate({
    ...{ keys, teams, users, clock, log, rates },
    adminToken: config.ATOLL_ADMIN_TOKEN,
  })
}

function addAllSandboxRoutes(
  server: FastifyInstance,
  parts: RouteParts,
  authenticate: Authenticate,
): void {
  const { sandboxes, create, pausing } = parts.sandboxes
  const { tokensOf } = parts.access
  const { changes, rules, secrets } = parts.network
  const { snapshots, fork } = parts.snapshots
  addSandboxRoutes(server, { authenticate, sandboxes, create, tokensOf })
  addLifecycleRoutes(server, { authenticate, sandboxes, pausing, tokensOf })
  addNetworkRoutes(server, { authenticate, changes, rules })
  const { fleet, stores, clock } = parts.core
  addInspectionRoutes(server, {
    authenticate,
    fileChanges: createFileChanges({ sandboxes, templates: stores.templates, fleet }),
    listConnections: createListConnections({ sandboxes, fleet }),
    listDenied: createListDeniedSandboxes({ owners: stores.logOwners, fleet, clock }),
  })
  addLineageRoutes(server, { authenticate, readLineage: createReadLineage(stores) })
  addTimelineRoutes(server, { authenticate, readTimeline: createReadTimeline(stores) })
  addSecretRoutes(server, { authenticate, secrets })
  addSnapshotRoutes(server, { authenticate, snapshots, fork, tokensOf })
}

function addAllTemplateRoutes(
  server: FastifyInstance,
  { core, sandboxes, builds, catalogue }: RouteParts,
  authenticate: Authenticate,
): void {
  const { fleet, clock, config, stores } = core
  const { templates: store, snapshots, teams } = stores
  const templates = createTemplates({ store, fleet })
  const selectTeam = createSelectTeam(teams)
  addTagRoutes(server, { authenticate, tags: createTemplateTags({ templates: store, clock }) })
  addTemplateRoutes(server, {
    ...{ authenticate, templates, selectTeam },
    own: createOwnTemplates({ templates: store, builds: stores.builds, clock }),
    remove: createDeleteTemplate({
      ...{ snapshots, templates: store, teams, copying: sandboxes.copying, clock },
      onDeleted: () => builds.onTemplateDeleted(),
    }),
  })
  addCatalogueRoutes(server, { authenticate, catalogue })
  const limitBytes = config.ATOLL_MAX_BUILD_FILES_MB * 1024 * 1024
  builds.addRoutes(server, { authenticate, selectTeam, templates, limitBytes })
}

function addAllTeamRoutes(
  server: FastifyInstance,
  { core, sandboxes: { ending } }: RouteParts,
  authenticate: Authenticate,
): void {
  const { clock, config, stores } = core
  const { teams, users, sandboxes, accessTokens: tokens } = stores
  const keys = createKeys({ store: stores.keys, clock })
  const configured = configuredLimits(config)
  addKeyRoutes(server, { authenticate, keys })
  addAccountRoutes(server, {
    authenticate,
    account: createAccount({ teams, tokens, keys, clock }),
  })
  const admin = createAdmin({ teams, users, sandboxes, ending, clock, configured })
  addAdminRoutes(server, { authenticate, admin, keys })
}
