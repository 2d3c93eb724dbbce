import { NodeService, SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError, createRouterTransport } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import { waitFor } from '@atoll/kit/wait'
import { simulateBuilds } from './builds.ts'
import type { SimulatedBuilds } from './builds.ts'
import { createEvents } from './events.ts'
import { simulateLogs } from './logs.ts'
import type { SimulatedLogs } from './logs.ts'
import { keepSandboxes } from './kept.ts'
import type { PausedSandbox, SimulatedSnapshot } from './kept.ts'
import { createTrouble } from './trouble.ts'
import type { Trouble } from './trouble.ts'

export const simulatedEnvdVersion = '0.5.7'

const simulatedFacts = {
  nodeId: 'sim',
  runtime: 'sim',
  envdVersion: simulatedEnvdVersion,
  templateIds: ['base'],
  instanceId: 'a1b2',
  version: '9.8.7',
  machine: { cpuArchitecture: 'x86_64', cpuFamily: '6', cpuModel: '85', cpuModelName: 'Sim' },
}

const simulatedUsage = {
  pools: [{ templateId: 'base', ready: 1, target: 2 }],
  cpuCount: 4,
  cpuPercent: 12.6,
  memoryTotalBytes: 2n ** 34n,
  memoryUsedBytes: 2n ** 33n,
  hugePages: { total: 8n, used: 3n, reserved: 1n, pageSizeBytes: 2n ** 21n },
  disks: [
    {
      mountPoint: '/data',
      device: '/dev/sim',
      fileSystem: 'ext4',
      usedBytes: 5n,
      totalBytes: 10n,
    },
  ],
}

/** In-memory node that follows the node protocol, and violates it on demand. */
export interface SimulatedNode {
  readonly transport: Transport
  /** Ordered by creation. */
  readonly running: ReadonlyMap<string, SimulatedSandbox>
  readonly paused: ReadonlyMap<string, PausedSandbox>
  readonly snapshots: ReadonlyMap<string, SimulatedSnapshot>
  readonly killed: readonly string[]
  /** Makes a pre-warmed sandbox ready under the first offered ID, and returns its ID and token. */
  stock(shape: SimulatedShape): Promise<{ readonly id: string; readonly accessToken: string }>
  /** Removes a pre-named sandbox, as if evicted or claimed by another client. */
  unstock(id: string): void
  /** Adds a sandbox that the API did not create. */
  plant(id: string): void
  /** Ends a sandbox. `silently` sends no event to watchers. */
  end(id: string, reason: string, how?: 'silently'): void
  /** Makes later creates fail halfway, after the sandbox exists; undefined makes them succeed again. */
  failCreates(code: Code | undefined): void
  failKills(code: Code | undefined): void
  failAll(code: Code | undefined): void
  /** Blocks creates after the sandbox exists, until the returned function is called. */
  holdCreates(): () => void
  holdKills(): () => void
  readonly fail: Trouble['fail']
  readonly hold: Trouble['hold']
  readonly begun: Trouble['begun']
  /** Adds a snapshot of a running sandbox that the API did not request. */
  plantSnapshot(snapshotId: string, sandboxId: string): void
  /** Brings back a killed sandbox as paused. */
  revive(id: string, sandbox: PausedSandbox): void
  /** Damages the record of a running or paused sandbox. */
  quarantine(id: string): void
  /** Makes the node behave like one with runc, which keeps no memory. */
  forgetMemory(): void
  /** Sets the usage that later samples report; omitted fields keep their values. */
  use(id: string, usage: Partial<SimulatedUsage>): void
  readonly logs: SimulatedLogs
  readonly builds: SimulatedBuilds
  /** Number of samplings of all sandboxes. */
  readonly samplings: number
  /** IDs of sandboxes that were sampled individually. */
  readonly weighed: readonly string[]
  /** Ends every watch like a lost connection. */
  dropWatchers(): void
  readonly watchers: number
}

export interface SimulatedSandbox {
  readonly templateId: string
  readonly cpuCount: number
  readonly memoryMb: number
  readonly diskSizeMb: number
  readonly envVars: Readonly<Record<string, string>>
  readonly accessToken: string | undefined
  readonly network?: SimulatedRules | undefined
  readonly ingress?: SimulatedIngress | undefined
  /** Snapshot that the sandbox was restored from. */
  readonly snapshotId?: string | undefined
  /** Number of boots; a resume with memory does not count. */
  readonly boots: number
}

export type SimulatedShape = Pick<
  SimulatedSandbox,
  'templateId' | 'cpuCount' | 'memoryMb' | 'diskSizeMb'
>

interface Offer {
  readonly accessToken: string
  readonly resolve: (shape: SimulatedShape) => void
}

export interface SimulatedRules {
  readonly allowOut: readonly string[]
  readonly denyOut: readonly string[]
  readonly allowNames: readonly string[]
  readonly proxy?: SimulatedProxy | undefined
  readonly headerRules: readonly {
    readonly pattern: string
    readonly headers: Readonly<Record<string, string>>
  }[]
}

interface SimulatedProxy {
  readonly address: string
  readonly username?: string | undefined
  readonly password?: string | undefined
}

export interface SimulatedIngress {
  readonly trafficAccessToken?: string | undefined
  readonly maskRequestHost?: string | undefined
  readonly httpsPorts: readonly number[]
}

export interface SimulatedUsage {
  readonly cpuUsedNs: bigint
  readonly readAtNs: bigint
  readonly ageNs: bigint
  readonly memoryUsedBytes: bigint
  readonly memoryCacheBytes: bigint
  readonly diskUsedBytes: bigint
}

const idle: SimulatedUsage = {
  cpuUsedNs: 0n,
  readAtNs: 0n,
  ageNs: 0n,
  memoryUsedBytes: 0n,
  memoryCacheBytes: 0n,
  diskUsedBytes: 0n,
}

export function simulateNode(): SimulatedNode {
  const running = new Map<string, SimulatedSandbox>()
  const usage = new Map<string, SimulatedUsage>()
  let samplings = 0
  const weighed: string[] = []
  const killed: string[] = []
  const offered = new Map<string, Offer>()
  const ready = new Set<string>()
  const events = createEvents()
  const trouble = createTrouble()
  const { refuse } = trouble
  const paused = new Map<string, PausedSandbox>()
  const logs = simulateLogs(refuse)
  const builds = simulateBuilds(trouble)
  const snapshots = new Map<string, SimulatedSnapshot>()
  const kept = keepSandboxes({
    ...{ running, paused, snapshots, events, trouble },
    sizeOf(id, withMemory) {
      const { diskUsedBytes, memoryUsedBytes } = usage.get(id) ?? idle
      return diskUsedBytes + (withMemory ? memoryUsedBytes : 0n)
    },
  })

  const transport = createRouterTransport((router) =>
    router.service(NodeService, {
      getNode() {
        refuse()
        return { ...simulatedFacts, keepsMemory: kept.keepsMemory }
      },
      measureNode() {
        refuse()
        const given = [...running.values()]
        return {
          ...simulatedUsage,
          sandboxCount: running.size,
          pausedCount: paused.size,
          allocatedCpuCount: given.reduce((total, { cpuCount }) => total + cpuCount, 0),
          allocatedMemoryBytes: given.reduce(
            (total, { memoryMb }) => total + BigInt(memoryMb) * 1024n * 1024n,
            0n,
          ),
        }
      },
      async createSandbox({ sandboxId, accessToken, isNamed, ...spec }) {
        refuse()
        if (running.has(sandboxId)) throw new ConnectError('taken', Code.AlreadyExists)
        if (isNamed && !ready.delete(sandboxId)) throw new ConnectError('gone', Code.Aborted)
        const boots = kept.bootsFrom(spec)
        running.set(sandboxId, { ...spec, accessToken, boots })
        await trouble.meet('create')
        events.publish({ case: 'started', value: at(sandboxId) })
        return { sandbox: at(sandboxId) }
      },
      async nameReadySandbox({ sandboxId, accessToken }, { signal }) {
        await trouble.meet('name')
        const { promise, resolve, reject } = Promise.withResolvers<SimulatedShape>()
        offered.set(sandboxId, { accessToken, resolve })
        signal.addEventListener('abort', () => {
          offered.delete(sandboxId)
          reject(new ConnectError('nobody waits', Code.Canceled))
        })
        return promise
      },
      async updateNetwork({ sandboxId, network }) {
        await trouble.meet('network')
        const sandbox = running.get(sandboxId)
        if (!sandbox) throw new ConnectError('absent', Code.NotFound)
        running.set(sandboxId, { ...sandbox, network })
        await trouble.meet('network', 'after')
        return {}
      },
      async killSandbox({ sandboxId }) {
        await trouble.meet('kill')
        killed.push(sandboxId)
        if (running.delete(sandboxId) || paused.delete(sandboxId)) {
          events.publish({ case: 'ended', value: { sandboxId, reason: 'was killed' } })
        }
        return {}
      },
      getSandbox({ sandboxId }) {
        refuse()
        if (running.has(sandboxId)) return { sandbox: at(sandboxId) }
        const found = kept.list().find((one) => one.sandboxId === sandboxId)
        if (!found) throw new ConnectError('absent', Code.NotFound)
        return { sandbox: found }
      },
      listSandboxes() {
        refuse()
        return { sandboxes: [...[...running.keys()].map(at), ...kept.list()] }
      },
      sampleSandboxes({ sandboxId: only }) {
        refuse()
        if (only === undefined) samplings += 1
        else weighed.push(only)
        const asked = [...running].filter(([id]) => only === undefined || id === only)
        const samples = asked.map(([sandboxId, { cpuCount, memoryMb, diskSizeMb }]) => ({
          ...(usage.get(sandboxId) ?? idle),
          sandboxId,
          cpuCount,
          memoryTotalBytes: BigInt(memoryMb) * mebibyte,
          diskTotalBytes: BigInt(diskSizeMb) * mebibyte,
        }))
        return { samples }
      },
      ...logs.methods,
      ...builds.methods,
      async *watchSandboxes(_, { signal }) {
        refuse()
        const following = events.follow(signal)
        for (const id of running.keys()) yield { event: { case: 'started', value: at(id) } }
        yield { event: { case: 'synced', value: {} } }
        for await (const event of following) yield { event }
      },
      ...kept.service,
    }),
  )

  return {
    transport,
    logs,
    builds,
    running,
    paused,
    snapshots,
    killed,
    weighed,
    async stock(shape) {
      await waitFor('a name to be offered', () => offered.size > 0)
      const [first] = offered
      if (!first) throw new Error('the offer was withdrawn')
      const [id, { accessToken, resolve }] = first
      const before = new Set(offered.keys())
      offered.delete(id)
      ready.add(id)
      resolve(shape)
      // The API offers another ID once it has received this one.
      await waitFor('the next offer', () => [...offered.keys()].some((name) => !before.has(name)))
      return { id, accessToken }
    },
    unstock: (id) => void ready.delete(id),
    plant: (id) =>
      void running.set(id, {
        templateId: 'base',
        cpuCount: 1,
        memoryMb: 128,
        diskSizeMb: 0,
        envVars: {},
        accessToken: undefined,
        boots: 1,
      }),
    end(id, reason, how) {
      running.delete(id)
      paused.delete(id)
      if (!how) events.publish({ case: 'ended', value: { sandboxId: id, reason } })
    },
    use: (id, changed) => void usage.set(id, { ...(usage.get(id) ?? idle), ...changed }),
    failCreates: (code) => trouble.fail('create', code),
    failKills: (code) => trouble.fail('kill', code),
    failAll: (code) => trouble.fail('all', code),
    holdCreates: () => trouble.hold('create'),
    holdKills: () => trouble.hold('kill'),
    fail: trouble.fail,
    hold: trouble.hold,
    begun: trouble.begun,
    plantSnapshot: (snapshotId, sandboxId) => kept.plantSnapshot(snapshotId, sandboxId),
    revive: (id, sandbox) => void paused.set(id, sandbox),
    quarantine(id) {
      const sandbox = running.get(id) ?? paused.get(id)
      if (!sandbox) throw new Error(`there is no sandbox ${id}`)
      running.delete(id)
      paused.set(id, { keepsMemory: false, ...sandbox, isQuarantined: true })
    },
    forgetMemory: () => kept.forgetMemory(),
    dropWatchers: () => events.drop(),
    get samplings() {
      return samplings
    },
    get watchers() {
      return events.followers
    },
  }
}

const mebibyte = 2n ** 20n

function at(sandboxId: string) {
  return { sandboxId, address: '127.0.0.1', state: SandboxState.RUNNING }
}
