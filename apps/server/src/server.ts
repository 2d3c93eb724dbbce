/** Composition root of `atoll up`: node, api and edge in one process, on one data directory. */
import { mkdir, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import { openStore, startApi } from '@atoll/api'
import type { FirstCredentials } from '@atoll/api'
import { NodeService, SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { createEdge } from '@atoll/edge'
import type { Logger } from '@atoll/kit/log'
import type { NodeConfig } from '@atoll/node/config'
import type { Shape } from '@atoll/node/domain/cell'
import { releaseBallastIfFull } from '@atoll/node/linux/ballast'
import type { ServerConfig } from './config.ts'
import { moveCredentials, saveCredentials } from './credentials.ts'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { startGateway } from './gateway.ts'
import { toUrl } from './listen-address.ts'
import { lockDataDir } from './lock.ts'

export interface ServerParts {
  readonly log: Logger
  /** Told of work that takes long at a first start. */
  readonly progress?: (label: string, fraction: number) => void
  /** Another node than that of this machine. */
  readonly startNode?: StartNode
}

export type StartNode = (
  config: NodeConfig,
  parts: {
    readonly log: Logger
    readonly progress: (label: string, fraction: number) => void
    readonly wanted: readonly Shape[]
  },
) => Promise<{ readonly transport: Transport; close(): Promise<void> }>

export interface RunningServer {
  readonly apiUrl: string
  readonly sandboxUrl: string
  /** Only from the start that made them. */
  readonly firstCredentials?: FirstCredentials
  /** False when the file of the first credentials was taken away. */
  readonly hasCredentials: boolean
  /** Ends no sandbox; says how many go on. */
  close(): Promise<{ readonly leftRunning: number }>
}

/** What is under way when the server stops has this long to finish. */
const graceMs = 1_500

export async function startServer(
  config: ServerConfig,
  parts: ServerParts,
): Promise<RunningServer> {
  await using started = new AsyncDisposableStack()
  const { log, progress = () => {}, startNode = startLocalNode } = parts
  const { ATOLL_DATA_DIR: dataDir, ATOLL_LISTEN, ATOLL_EDGE_LISTEN } = config.server

  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  started.use(await lockDataDir(dataDir))
  releaseBallastIfFull(dataDir)
  started.use(await writePidFile(dataDir))
  const gateway = await startGateway({ api: ATOLL_LISTEN, edge: ATOLL_EDGE_LISTEN })
  started.defer(() => gateway.close())
  const apiUrl = toUrl(gateway.apiAddress)
  const sandboxUrl = toUrl(gateway.sandboxAddress)

  // Before the node: a store that this release must not use is refused while nothing has been touched.
  const store = await openStore(config.api)
  started.defer(() => store.close())

  const node = await startNode(config.node, {
    log: log.child({ part: 'node' }),
    progress,
    wanted: [baseShape(config)],
  })
  started.defer(() => node.close())
  const api = await startApi(config.api, {
    store,
    node: node.transport,
    nodeName: `${hostname()}:${dataDir}`,
    log: log.child({ part: 'api' }),
    saveCredentials: (made) => saveCredentials(dataDir, { ...made, url: apiUrl, sandboxUrl }),
  })
  started.defer(() => api.close())
  const edge = createEdge({
    node: node.transport,
    log: log.child({ part: 'edge' }),
    config: config.edge,
    findSigner: api.findSigner,
    wake: api.wake,
  })
  started.defer(() => edge.close())
  const hasCredentials = await moveCredentials(dataDir, { url: apiUrl, sandboxUrl })
  gateway.open({ api: api.handler, edge })
  log.info({ event: 'server.start', apiUrl, sandboxUrl })

  const owned = started.move()
  return {
    apiUrl,
    sandboxUrl,
    hasCredentials,
    ...(api.firstCredentials && { firstCredentials: api.firstCredentials }),
    async close() {
      gateway.stop(graceMs)
      const leftRunning = await countSandboxes(node.transport)
      await owned.disposeAsync()
      log.info({ event: 'server.stop', leftRunning })
      return { leftRunning }
    },
  }
}

/** What most sandboxes are: worth having ready before the first is wanted. */
function baseShape({ api }: ServerConfig): Shape {
  return {
    templateId: 'base',
    cpuCount: api.ATOLL_BASE_CPU_COUNT,
    memoryMb: api.ATOLL_BASE_MEMORY_MB,
    diskSizeMb: api.ATOLL_BASE_DISK_SIZE_MB,
  }
}

/** Loaded when it is needed: the agent brings native parts that only a real node wants. */
const startLocalNode: StartNode = async (config, parts) => {
  const { startNode } = await import('@atoll/node')
  return startNode(config, parts)
}

/** So that `atoll down` finds us. The lock, not this file, says whether we run. */
async function writePidFile(dataDir: string): Promise<AsyncDisposable> {
  const path = join(dataDir, 'server.pid')
  await writeFileAtomic(path, `${process.pid}\n`, 0o644)
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}

async function countSandboxes(transport: Transport): Promise<number> {
  const client = createClient(NodeService, transport)
  const { sandboxes } = await client.listSandboxes({}, { timeoutMs: 1_000 })
  return sandboxes.filter(({ state }) => state === SandboxState.RUNNING).length
}
