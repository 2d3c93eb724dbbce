import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError, createRouterTransport } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import { createEvents } from './events.ts'

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

/** A node in memory that keeps the promises of the node protocol, and breaks them on demand. */
export interface SimulatedNode {
  readonly transport: Transport
  /** What runs, in order of creation. */
  readonly running: ReadonlyMap<string, SimulatedSandbox>
  readonly killed: readonly string[]
  /** Puts a sandbox there that nobody asked for. */
  plant(id: string): void
  /** A sandbox ends by itself. With `silently` the watchers are not told. */
  end(id: string, reason: string, how?: 'silently'): void
  /** From now on, half-way, with the sandbox there already; `undefined` makes it work again. */
  failCreates(code: Code | undefined): void
  failKills(code: Code | undefined): void
  failAll(code: Code | undefined): void
  /** Creates wait at their end, with the sandbox there already, until the returned function is called. */
  holdCreates(): () => void
  holdKills(): () => void
  /** From now on `sample` tells this of it; what is not named stays as it was. */
  use(id: string, usage: Partial<SimulatedUsage>): void
  /** How often it was asked what sandboxes use. */
  readonly samplings: number
  /** Ends every watch as a lost connection does. */
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
  const killed: string[] = []
  const events = createEvents()
  const broken: { creates?: Code | undefined; kills?: Code | undefined; all?: Code | undefined } =
    {}
  const gates: { creates?: Promise<void>; kills?: Promise<void> } = {}

  const refuse = (code: Code | undefined) => {
    const effective = broken.all ?? code
    if (effective !== undefined) throw new ConnectError('simulated failure', effective)
  }
  const hold = (gate: 'creates' | 'kills') => {
    const { promise, resolve } = Promise.withResolvers<void>()
    gates[gate] = promise
    return () => {
      delete gates[gate]
      resolve()
    }
  }

  const transport = createRouterTransport((router) =>
    router.service(NodeService, {
      getNode() {
        refuse(undefined)
        return simulatedFacts
      },
      measureNode() {
        refuse(undefined)
        const given = [...running.values()]
        return {
          ...simulatedUsage,
          sandboxCount: running.size,
          allocatedCpuCount: given.reduce((total, { cpuCount }) => total + cpuCount, 0),
          allocatedMemoryBytes: given.reduce(
            (total, { memoryMb }) => total + BigInt(memoryMb) * 1024n * 1024n,
            0n,
          ),
        }
      },
      async createSandbox({ sandboxId, accessToken, ...spec }) {
        refuse(undefined)
        if (running.has(sandboxId)) throw new ConnectError('taken', Code.AlreadyExists)
        running.set(sandboxId, { ...spec, accessToken })
        await gates.creates
        refuse(broken.creates)
        events.publish({ case: 'started', value: at(sandboxId) })
        return { sandbox: at(sandboxId) }
      },
      async killSandbox({ sandboxId }) {
        refuse(broken.kills)
        await gates.kills
        killed.push(sandboxId)
        if (running.delete(sandboxId)) {
          events.publish({ case: 'ended', value: { sandboxId, reason: 'was killed' } })
        }
        return {}
      },
      getSandbox({ sandboxId }) {
        refuse(undefined)
        if (!running.has(sandboxId)) throw new ConnectError('absent', Code.NotFound)
        return { sandbox: at(sandboxId) }
      },
      listSandboxes() {
        refuse(undefined)
        return { sandboxes: [...running.keys()].map(at) }
      },
      sampleSandboxes() {
        refuse(undefined)
        samplings += 1
        const samples = [...running].map(([sandboxId, { cpuCount, memoryMb, diskSizeMb }]) => ({
          ...(usage.get(sandboxId) ?? idle),
          sandboxId,
          cpuCount,
          memoryTotalBytes: BigInt(memoryMb) * mebibyte,
          diskTotalBytes: BigInt(diskSizeMb) * mebibyte,
        }))
        return { samples }
      },
      async *watchSandboxes(_, { signal }) {
        refuse(undefined)
        const following = events.follow(signal)
        for (const id of running.keys()) yield { event: { case: 'started', value: at(id) } }
        yield { event: { case: 'synced', value: {} } }
        for await (const event of following) yield { event }
      },
    }),
  )

  return {
    transport,
    running,
    killed,
    plant: (id) =>
      void running.set(id, {
        templateId: 'base',
        cpuCount: 1,
        memoryMb: 128,
        diskSizeMb: 0,
        envVars: {},
        accessToken: undefined,
      }),
    end(id, reason, how) {
      running.delete(id)
      if (!how) events.publish({ case: 'ended', value: { sandboxId: id, reason } })
    },
    use: (id, changed) => void usage.set(id, { ...(usage.get(id) ?? idle), ...changed }),
    failCreates: (code) => void (broken.creates = code),
    failKills: (code) => void (broken.kills = code),
    failAll: (code) => void (broken.all = code),
    holdCreates: () => hold('creates'),
    holdKills: () => hold('kills'),
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
  return { sandboxId, address: '127.0.0.1' }
}
