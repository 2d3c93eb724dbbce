import { systemClock } from '@atoll/kit/clock'
import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { Transport } from '@connectrpc/connect'
import { createFirstTeam, ensureBaseTemplate, ensureTokenSeed } from '../app/bootstrap.ts'
import type { FirstCredentials } from '../app/bootstrap.ts'
import { createRotation } from '../app/encryption/rotate.ts'
import type { ResealRecords, Rotation } from '../app/encryption/rotate.ts'
import { createCheckKept } from '../app/builds/check-kept.ts'
import { createTemplateBytes } from '../app/builds/template-bytes.ts'
import type { TemplateBytes } from '../app/builds/template-bytes.ts'
import { startLease } from '../app/lease.ts'
import type { LiveApis } from '../app/live-apis.ts'
import { createFleet } from '../app/nodes/fleet.ts'
import type { Fleet } from '../app/nodes/fleet.ts'
import { createLoads } from '../app/nodes/loads.ts'
import { startMeasuring } from '../app/nodes/measuring.ts'
import { createNodes } from '../app/nodes/nodes.ts'
import type { Nodes } from '../app/nodes/nodes.ts'
import { createPlacing } from '../app/nodes/placing.ts'
import type { Placing } from '../app/nodes/placing.ts'
import { createLimitsOf } from '../app/teams/limits.ts'
import type { LimitsOf } from '../app/teams/limits.ts'
import { baseResources, configuredLimits } from '../config.ts'
import type { ApiConfig } from '../config.ts'
import { readProcessId } from '../db/process-id.ts'
import type { Stores } from '../db/stores.ts'
import type { OnRequest } from '../http/server/request-record.ts'
import { connectLink } from '../nodes/connect-link.ts'
import type { FleetParts } from './fleet-parts.ts'
import { openStore } from './store.ts'

export interface ApiParts {
  /** Store from `openStore`; the caller closes it. If absent, the API opens and closes its own. */
  readonly store?: Stores
  /** Transports for `NodeService`. A node must not list sandboxes before it has adopted those of its predecessor. */
  readonly nodes: readonly Transport[]
  /** Makes this the api of a fleet. Absent: all nodes are in `nodes`. */
  readonly fleet?: FleetParts | undefined
  /** Identifies the local node: only processes with the same node name may share a store. */
  readonly nodeName?: string
  /** Seals the private values in the records of the local node with the current key. */
  readonly resealRecords?: ResealRecords
  readonly log: Logger
  readonly clock?: Clock
  /** Receives each answered request. */
  readonly onRequest?: OnRequest | undefined
  /** Domain of sandbox host names, shown to clients. With a port if it is not the default port. */
  readonly domain?: string | undefined
  /** Saves the first credentials where the operator can find them; called before they are in the store. */
  readonly saveCredentials?: (credentials: FirstCredentials) => Promise<void>
}

/** Store, node and identity of this process, which all other parts of the API use. */
export interface Core {
  readonly config: ApiConfig
  readonly stores: Stores
  readonly fleet: Fleet
  readonly placing: Placing
  readonly nodes: Nodes
  readonly clock: Clock
  readonly log: Logger
  readonly onRequest: OnRequest | undefined
  readonly processId: string
  /** The processes that share the store. */
  readonly liveApis: LiveApis
  /** Seed of all sandbox access tokens. */
  readonly tokenSeed: string
  readonly rotation: Rotation
  readonly limitsOf: LimitsOf
  readonly templateBytes: TemplateBytes
  /** Throws a fault when the team has used up its disk quota. */
  readonly checkKept: (teamId: string) => Promise<void>
}

interface StartedCore {
  readonly core: Core
  readonly firstCredentials: FirstCredentials | undefined
  close(): Promise<void>
}

/** Opens the store, creates its first records, and takes the lease of this process. */
export async function startCore(config: ApiConfig, parts: ApiParts): Promise<StartedCore> {
  await using started = new AsyncDisposableStack()
  const { log, clock = systemClock } = parts
  const stores = parts.store ?? (await openStore(config))
  if (!parts.store) started.defer(() => stores.close())
  const { templates, teams } = stores

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

  const { background } = stores
  const fleet = createFleet({ store: stores.nodes, background: background.nodes, clock, log })
  for (const transport of parts.nodes) fleet.add(connectLink(transport))
  await registerAll(fleet)
  const loads = createLoads()
  const placing = createPlacing({ fleet, loads, store: stores.nodes, clock })
  const nodes = createNodes({ fleet, placing, store: stores.nodes, clock })
  const measuring = startMeasuring({ fleet, loads, placing, store: background.nodes, log })
  started.defer(() => measuring.close())
  const limitsOf = createLimitsOf(teams, configuredLimits(config))
  const templateBytes = createTemplateBytes({
    builds: stores.builds,
    fleet,
    log,
  })
  const checkKept = createCheckKept({ sandboxes: stores.sandboxes, templateBytes, limitsOf })
  const { keyRing, leases } = stores
  const rotation = createRotation({
    ...{ keyRing, leases, clock, log, processId },
    holders: [() => stores.reseal(), ...(parts.resealRecords ? [parts.resealRecords] : [])],
  })
  const owned = started.move()
  return {
    core: {
      ...{ config, stores, fleet, placing, nodes },
      onRequest: parts.onRequest,
      liveApis: lease.liveApis,
      ...{ clock, log, processId, tokenSeed, rotation, limitsOf, templateBytes, checkKept },
    },
    firstCredentials,
    close: () => owned.disposeAsync(),
  }
}

const registerLimitMs = 5_000

/** Nodes that do not answer now are registered later, by their reconcilers. */
export async function registerAll({ members }: Fleet): Promise<void> {
  const limit = AbortSignal.timeout(registerLimitMs)
  await Promise.allSettled(members().map((member) => member.register(limit)))
}
