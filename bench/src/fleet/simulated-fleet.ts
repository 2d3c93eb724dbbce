/** A fleet of one api, PostgreSQL and simulated nodes in a process of their own. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { createPart } from '../../../tools/fleet/part.ts'
import type { PostgresServer } from '../../../tools/postgres.ts'
import { openPsql } from '../database-shell.ts'

export interface SimulatedFleet extends AsyncDisposable {
  /** Creates a sandbox and returns its ID. */
  create(): Promise<string>
  kill(id: string): Promise<void>
  /** Returns the number of sandboxes of each node. */
  sandboxCounts(): Promise<number[]>
  /** Resident memory of the api. */
  apiMemoryMb(): Promise<number>
}

const joinLimitMs = 900_000
const shownWarnings = 10
const program = join(import.meta.dirname, 'simulated-nodes.ts')

export async function startSimulatedFleet(
  nodeCount: number,
  { postgres, folder }: { readonly postgres: PostgresServer; readonly folder: string },
): Promise<SimulatedFleet> {
  await using opened = new AsyncDisposableStack()
  const name = `fleet_${nodeCount}`
  const shell = opened.use(await openPsql(`${postgres.url}/postgres`))
  await shell.query(`create database ${name};`)
  const dataDir = join(folder, name, 'api')
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const adminToken = randomBytes(16).toString('hex')
  const [port, fleetPort] = [await freePort(), await freePort()]
  const [url, fleetAddress] = [`http://127.0.0.1:${port}`, `127.0.0.1:${fleetPort}`]
  const env = {
    ...process.env,
    ATOLL_ADMIN_TOKEN: adminToken,
    ATOLL_DATA_DIR: dataDir,
    ATOLL_DATABASE_URL: `${postgres.url}/${name}`,
    ATOLL_LISTEN: `127.0.0.1:${port}`,
    ATOLL_FLEET_LISTEN: fleetAddress,
    ATOLL_TEAM_CONCURRENT_SANDBOXES: '100000',
  }
  const api = createPart({ args: ['api'], env, ready: 'The api is running' })
  opened.defer(() => api.stop('SIGKILL'))
  await api.start()
  await startNodes(opened, env, [String(nodeCount), url, fleetAddress, join(folder, name)])
  const listNodes = createList(url, adminToken)
  const isReady = async () =>
    (await listNodes()).filter(({ status }) => status === 'ready').length === nodeCount
  // Rarely: the answer needs an answer of each node.
  const limits = { timeoutMs: joinLimitMs, intervalMs: 3_000 }
  await waitFor('the nodes to be ready', isReady, limits)
  const { apiKey }: { apiKey: string } = JSON.parse(
    await readFile(join(dataDir, 'credentials.json'), 'utf8'),
  )
  const call = createCall(url, apiKey, () => api.output())
  const owned = opened.move()
  return {
    async create() {
      const body = { templateID: 'base', timeout: 3_600 }
      const { sandboxID }: { sandboxID: string } = JSON.parse(
        await call('POST', '/v2/sandboxes', body),
      )
      return sandboxID
    },
    async kill(id) {
      await call('DELETE', `/sandboxes/${id}`)
    },
    async sandboxCounts() {
      return (await listNodes()).map(({ sandboxCount }) => sandboxCount)
    },
    async apiMemoryMb() {
      const status = await readFile(`/proc/${api.pid()}/status`, 'utf8')
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function startNodes(
  opened: AsyncDisposableStack,
  env: NodeJS.ProcessEnv,
  args: readonly string[],
): Promise<void> {
  const child = spawn(process.execPath, [program, ...args], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  opened.defer(async () => {
    child.stdin.end()
    await exit
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const isReady = () => {
    if (child.exitCode !== null) throw new Error(`the simulated nodes ended: ${child.exitCode}`)
    return output.includes('ready')
  }
  await waitFor('the simulated nodes to join', isReady, { timeoutMs: joinLimitMs })
}

interface ListedNode {
  readonly status: string
  readonly sandboxCount: number
}

function createList(url: string, adminToken: string): () => Promise<readonly ListedNode[]> {
  return async () => {
    const reply = await fetch(`${url}/nodes`, { headers: { 'X-Admin-Token': adminToken } })
    const text = await reply.text()
    if (!reply.ok) throw new Error(`GET /nodes answers ${reply.status}: ${text}`)
    return JSON.parse(text)
  }
}

/** `output` returns the log of the api, which says why a request failed. */
function createCall(url: string, apiKey: string, output: () => string) {
  const headers = { 'Content-Type': 'application/json', 'X-API-Key': apiKey }
  return async (method: string, path: string, body?: unknown): Promise<string> => {
    const init = { method, headers, body: body === undefined ? null : JSON.stringify(body) }
    const reply = await fetch(`${url}${path}`, init)
    const text = await reply.text()
    if (reply.ok) return text
    const warnings = output()
      .split('\n')
      .filter((line) => /"level":[456]0/.test(line))
    const log = warnings.slice(-shownWarnings).join('\n')
    throw new Error(`${method} ${path} answers ${reply.status}: ${text}\nLog of the api:\n${log}`)
  }
}
