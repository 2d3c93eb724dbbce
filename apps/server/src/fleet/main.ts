/** `atoll api`, `atoll edge` and `atoll node`: run one part of a fleet until a signal stops it. */
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { loadServerConfig } from '../config.ts'
import type { ServerConfig } from '../config.ts'
import { claimDataDir } from '../data-dir.ts'
import { formatListenAddress } from '../listen-address.ts'
import { exitOnUnexpectedError, logPath, openLog, watchSignals } from '../main.ts'
import { createProgressView } from '../progress.ts'
import { startApiPart } from './parts/start-api.ts'
import { startEdgePart } from './parts/start-edge.ts'
import { startNodePart } from './parts/start-node.ts'
import type { NodePartOptions } from './parts/start-node.ts'

type Env = Record<string, string | undefined>

interface RunningPart {
  /** Shown to people after the start. */
  readonly message: string
  close(): Promise<void>
}

type StartPart = (
  config: ServerConfig,
  parts: { readonly log: Logger; readonly progress: (label: string, fraction: number) => void },
) => Promise<RunningPart>

const exitAfterMs = 500

export async function runApi(env: Env): Promise<void> {
  await runPart(env, async (config, { log }) => {
    if (config.api.ATOLL_DATABASE_URL === undefined) throw needsPostgres()
    const api = await startApiPart(config, log)
    const { firstCredentials: first, url } = api
    const lines = [
      `The api is running on ${url}, and for edges and nodes on ${formatListenAddress(api.fleetAddress)}`,
      ...(first
        ? [`First API key: ${first.apiKey}`, `First access token: ${first.accessToken}`]
        : []),
    ]
    return { message: lines.join('\n'), close: () => api.close() }
  })
}

export async function runEdge(env: Env): Promise<void> {
  await runPart(env, async (config, { log }) => {
    const edge = await startEdgePart(config, log)
    return { message: `The edge is running on ${edge.url}`, close: () => edge.close() }
  })
}

export async function runNode(
  env: Env,
  options: Pick<NodePartOptions, 'startNode'> = {},
): Promise<void> {
  await runPart(env, async (config, parts) => {
    const node = await startNodePart(config, { ...parts, ...options })
    const message = `Node ${node.id} is running on ${formatListenAddress(node.address)}`
    return { message, close: () => node.close() }
  })
}

async function runPart(env: Env, start: StartPart): Promise<void> {
  const config = loadServerConfig(env)
  const { ATOLL_LOG, ATOLL_DATA_DIR } = config.server
  const people = ATOLL_LOG === 'stdout' ? process.stderr : process.stdout
  await claimDataDir(ATOLL_DATA_DIR)
  const log = openLog(config)
  const progress = createProgressView(people)
  const signals = watchSignals()
  exitOnUnexpectedError(log, ATOLL_LOG === 'stdout' ? undefined : logPath(ATOLL_DATA_DIR))
  const part = await start(config, { log, progress: progress.report })
    .finally(() => progress.clear())
    .catch((error: unknown) => {
      // A failed start may leave handles open; exit after the caller has reported the error.
      setTimeout(() => process.exit(1), exitAfterMs).unref()
      throw error
    })
  signals.endGracefully()
  people.write(`${part.message}\n`)
  await signals.first
  await part.close()
  setTimeout(() => process.exit(0), exitAfterMs).unref()
}

function needsPostgres(): Fault {
  const message =
    'atoll api needs a PostgreSQL database that all apis share: set ATOLL_DATABASE_URL'
  return new Fault('invalid', 'configuration_refused', message)
}
