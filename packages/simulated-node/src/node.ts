import { IngressSchema, NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { create } from '@bufbuild/protobuf'
import { Code, createRouterTransport } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import { simulateAgent } from './agent.ts'
import type { AgentControls } from './agent.ts'
import { simulateBuilds } from './builds.ts'
import type { SimulatedBuilds } from './builds.ts'
import { simulateCatalogue, simulatedCatalogueTemplate } from './catalogue.ts'
import type { SimulatedCatalogue } from './catalogue.ts'
import { simulateChanges } from './changes.ts'
import type { SimulatedChanges } from './changes.ts'
import { simulateConnections } from './connections.ts'
import type { SimulatedConnections } from './connections.ts'
import { createEvents } from './events.ts'
import { createFailureInjector } from './failure-injector.ts'
import type { FailureInjector } from './failure-injector.ts'
import { simulateLogs } from './logs.ts'
import type { SimulatedLogs } from './logs.ts'
import { simulatePauses } from './pauses.ts'
import { toMessage } from './sandbox-message.ts'
import type {
  NodeState,
  PausedSandbox,
  SimulatedIngress,
  SimulatedSandbox,
  SimulatedShape,
  SimulatedSnapshot,
} from './sandbox.ts'
import { simulateSandboxes } from './sandboxes.ts'
import { simulateSnapshots } from './snapshots.ts'
import { simulateStored } from './stored.ts'
import { simulateUsage } from './usage.ts'
import type { SimulatedUsage } from './usage.ts'
import { simulateWarmPool } from './warm-pool.ts'

export const simulatedEnvdVersion = '0.5.7'

/** Sandbox that no request made. */
const orphan = {
  templateId: 'base',
  cpuCount: 1,
  memoryMb: 128,
  diskSizeMb: 0,
  envVars: {},
  accessToken: undefined,
  boots: 1,
  generation: 0,
}

const simulatedFacts = {
  runtime: 'sim',
  envdVersion: simulatedEnvdVersion,
  templateIds: ['base'],
  version: '9.8.7',
  memoryFormat: 'sim 1',
  cpuFeatures: ['avx2', 'sse4_2'],
  machine: { cpuArchitecture: 'x86_64', cpuFamily: '6', cpuModel: '85', cpuModelName: 'Sim' },
}

/** In-memory node that follows the node protocol, and violates it on demand. */
export interface SimulatedNode
  extends SandboxControls, FailureControls, WatchControls, AgentControls {
  readonly transport: Transport
  /** Ordered by creation. */
  readonly running: ReadonlyMap<string, SimulatedSandbox>
  readonly paused: ReadonlyMap<string, PausedSandbox>
  readonly snapshots: ReadonlyMap<string, SimulatedSnapshot>
  /** IDs of snapshots and built templates that the object store has. */
  readonly durableFiles: Set<string>
  readonly killed: readonly string[]
  /** Makes a pre-warmed sandbox ready under the first offered ID, and returns its ID and token. */
  stock(shape: SimulatedShape): Promise<{ readonly id: string; readonly accessToken: string }>
  /** Removes a pre-named sandbox, as if evicted or claimed by another client. */
  unstock(id: string): void
  /** Makes the node behave like one with runc, which keeps no memory. */
  dropMemorySupport(): void
  /** Changes what the node says of the memory that it can restore. */
  setSuitability(facts: { readonly memoryFormat?: string; readonly cpuFeatures?: string[] }): void
  /** Sets the usage that later samples report; omitted fields keep their values. */
  setUsage(id: string, usage: Partial<SimulatedUsage>): void
  readonly logs: SimulatedLogs
  readonly changes: SimulatedChanges
  readonly connections: SimulatedConnections
  readonly builds: SimulatedBuilds
  readonly catalogue: SimulatedCatalogue
  /** Number of samplings of all sandboxes. */
  readonly samplings: number
  /** IDs of sandboxes that were sampled individually. */
  readonly sampledAlone: readonly string[]
  readonly watchers: number
}

interface WatchControls {
  /** Ends every watch like a lost connection. */
  dropWatchers(): void
  /** Fails every watch, old and new, until `mendWatches`. */
  breakWatches(): void
  mendWatches(): void
}

interface SandboxControls {
  /** Starts a new or a paused sandbox without a request, and notifies watchers. */
  start(id: string, address: string, ingress?: SimulatedIngress): void
  /** Begins a pause without a request, which `start` or `pause` ends. */
  beginPause(id: string): void
  pause(id: string): void
  /** Adds a running sandbox without notifying watchers, as if it existed before. */
  addOrphan(id: string): void
  /** Adds a snapshot of a running sandbox that the API did not request. */
  addOrphanSnapshot(snapshotId: string, sandboxId: string): void
  /** Ends a sandbox. `silently` sends no event to watchers. */
  end(id: string, reason?: string, how?: 'silently'): void
  /** Brings back a killed sandbox as paused. */
  revive(id: string, sandbox: PausedSandbox): void
  /** Damages the record of a running or paused sandbox. */
  quarantine(id: string): void
  /** Removes the files of a paused sandbox that the object store has. */
  evict(id: string): void
}

interface FailureControls {
  /** Makes later creates fail halfway, after the sandbox exists; undefined makes them succeed again. */
  failCreates(code: Code | undefined): void
  failKills(code: Code | undefined): void
  failAll(code: Code | undefined): void
  /** Blocks creates after the sandbox exists, until the returned function is called. */
  holdCreates(): () => void
  holdKills(): () => void
  readonly fail: FailureInjector['fail']
  readonly hold: FailureInjector['hold']
  readonly begun: FailureInjector['begun']
}

/**
 * `newAddress` returns the address for a new or resumed sandbox. `objects` is shared by the nodes of a fleet: a pause is in
 * it at once, and so is the log of a sandbox that was paused or has ended.
 */
export function simulateNode(
  newAddress: () => string = () => '127.0.0.2',
  nodeId = 'sim',
  objects?: NodeState['objects'],
): SimulatedNode {
  const events = createEvents((event) => logs.follow(event))
  const failures = createFailureInjector()
  const state: NodeState = {
    ...{ running: new Map(), paused: new Map(), snapshots: new Map() },
    ...{ events, failures, newAddress, objects, durableFiles: new Set() },
  }
  let keepsMemory = true
  let facts = { ...simulatedFacts, hasObjects: objects !== undefined }
  const usage = simulateUsage(state)
  const keeping = { keepsMemory: () => keepsMemory, sizeOf: usage.sizeOf }
  const [warmPool, logs] = [simulateWarmPool(failures), simulateLogs(state)]
  const pauses = simulatePauses(state, { ...keeping, fetchLog: logs.fetch })
  const snapshots = simulateSnapshots(state, keeping)
  const [changes, connections] = [simulateChanges(state), simulateConnections(state)]
  const [builds, catalogue] = [simulateBuilds(state), simulateCatalogue(failures)]
  const hasTemplate = (id: string) => canUseTemplate(id, builds, objects)
  const sandboxes = simulateSandboxes(state, { snapshots, warmPool, hasTemplate })
  const agent = simulateAgent(nodeId, events)
  const getNode = () => {
    failures.throwIfDown()
    return { ...facts, ...agent.identity(), keepsMemory }
  }
  const methods = {
    ...{ getNode, ...sandboxes.methods, ...pauses.methods, ...snapshots.methods },
    ...{ ...warmPool.methods, ...usage.methods, ...logs.methods, ...builds.methods },
    ...{ ...catalogue.methods, ...changes.methods, ...connections.methods },
    ...simulateStored(state),
  }
  return {
    transport: createRouterTransport((router) => router.service(NodeService, methods), {
      router: { interceptors: [agent.checkAddressee] },
    }),
    ...agent.controls,
    ...{ running: state.running, paused: state.paused },
    ...{ snapshots: state.snapshots, durableFiles: state.durableFiles },
    killed: sandboxes.killed,
    ...{ logs: logs.controls, changes, connections, builds, catalogue },
    stock: warmPool.stock,
    unstock: (id) => void warmPool.take(id),
    dropMemorySupport: () => void (keepsMemory = false),
    setSuitability: (changed) => void (facts = { ...facts, ...changed }),
    setUsage: usage.set,
    sampledAlone: usage.sampledAlone,
    addOrphanSnapshot: snapshots.addOrphan,
    ...sandboxControls(state),
    ...failureControls(failures),
    ...watchControls(state),
    get samplings() {
      return usage.samplings
    },
    get watchers() {
      return events.followers
    },
  }
}

const builtIn = [...simulatedFacts.templateIds, simulatedCatalogueTemplate]

/** Whether the node has a template, or can fetch it. */
function canUseTemplate(
  id: string,
  { templates }: Pick<SimulatedBuilds, 'templates'>,
  objects: NodeState['objects'],
): boolean {
  if (builtIn.includes(id) || templates.has(id)) return true
  return objects?.isDown === false && objects.templates.has(id)
}

function watchControls({ events, failures }: NodeState): WatchControls {
  return {
    dropWatchers: () => events.drop(),
    breakWatches() {
      failures.fail('watch', Code.Unavailable)
      events.drop()
    },
    mendWatches: () => failures.fail('watch', undefined),
  }
}

function sandboxControls({
  running,
  paused,
  events,
  newAddress,
}: NodeState): Omit<SandboxControls, 'addOrphanSnapshot'> {
  return {
    addOrphan(id) {
      running.set(id, { ...orphan, address: newAddress() })
    },
    start(id, address, ingress) {
      const policy = ingress && { ingress: create(IngressSchema, ingress) }
      const sandbox = { ...orphan, ...running.get(id), ...policy, address, isPausing: false }
      paused.delete(id)
      running.set(id, sandbox)
      events.publish({ case: 'started', value: toMessage(id, sandbox) })
    },
    beginPause(id) {
      const sandbox = running.get(id)
      if (!sandbox) throw new Error(`Cannot pause sandbox ${id}: it does not run on the node`)
      running.set(id, { ...sandbox, isPausing: true })
      events.publish({ case: 'pausing', value: { sandboxId: id } })
    },
    pause(id) {
      const sandbox = running.get(id) ?? { ...orphan, address: '' }
      running.delete(id)
      paused.set(id, { ...sandbox, isPausing: false, keepsMemory: true })
      events.publish({ case: 'paused', value: { sandboxId: id } })
    },
    end(id, reason = 'was killed', how) {
      const { generation = 0 } = running.get(id) ?? paused.get(id) ?? {}
      running.delete(id)
      paused.delete(id)
      if (!how) events.publish({ case: 'ended', value: { sandboxId: id, generation, reason } })
    },
    revive: (id, sandbox) => void paused.set(id, sandbox),
    quarantine(id) {
      const sandbox = running.get(id) ?? paused.get(id)
      if (!sandbox) throw new Error(`Cannot quarantine sandbox ${id}: it is not on the node`)
      running.delete(id)
      paused.set(id, { keepsMemory: false, ...sandbox, isQuarantined: true })
    },
    evict(id) {
      const sandbox = paused.get(id)
      if (!sandbox) throw new Error(`Cannot evict sandbox ${id}: it is not paused on the node`)
      paused.set(id, { ...sandbox, isEvicted: true })
    },
  }
}

function failureControls(failures: FailureInjector): FailureControls {
  return {
    failCreates: (code) => failures.fail('create', code),
    failKills: (code) => failures.fail('kill', code),
    failAll: (code) => failures.fail('all', code),
    holdCreates: () => failures.hold('create'),
    holdKills: () => failures.hold('kill'),
    fail: failures.fail,
    hold: failures.hold,
    begun: failures.begun,
  }
}
