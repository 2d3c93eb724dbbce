/** A fleet of one api, PostgreSQL and simulated nodes in a process of their own. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { createPart } from '../../../tools/fleet/part.ts'
import type { PostgresServer } from '../../../tools/postgres.ts'
import { openPsql } from '../database-shell.ts'
import type { DatabaseShell } from '../database-shell.ts'
import { timed } from '../scenario.ts'
import { createCalls } from './calls.ts'
import type { Calls } from './calls.ts'
import { copyRecords } from './copies.ts'

export interface SimulatedFleet extends Calls, AsyncDisposable {
  /** Returns the number of sandboxes of each node, by the records. */
  sandboxCounts(): Promise<number[]>
  /**
   * Gives each sandbox as many copies, which takes a restart of the api. Returns the milliseconds until the api has reached all
   * nodes again.
   */
  copySandboxes(copies: number): Promise<number>
  /** Processes of each part. */
  pids(): Promise<Readonly<Record<FleetPart, readonly number[]>>>
}

export type FleetPart = 'api' | 'nodes' | 'database'

const joinLimitMs = 1_200_000
const teamCount = 50
const program = join(import.meta.dirname, 'simulated-nodes.ts')

export async function startSimulatedFleet(
  nodeCount: number,
  { postgres, folder }: { readonly postgres: PostgresServer; readonly folder: string },
): Promise<SimulatedFleet> {
  await using opened = new AsyncDisposableStack()
  const name = `fleet_${nodeCount}`
  await createDatabase(postgres, name)
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
  const args = [String(nodeCount), url, fleetAddress, join(folder, name)]
  const nodes = await startNodes(opened, env, args)
  const shell = opened.use(await openPsql(`${postgres.url}/${name}`))
  await waitUntilRegistered(shell, nodeCount)
  const calls = await createCalls({ url, adminToken, teamCount, output: () => api.output() })
  const owned = opened.move()
  return {
    ...calls,
    async sandboxCounts() {
      const counts = `select count(sandboxes.id) from nodes left join sandboxes
        on node_id = nodes.id and state = 'running' group by nodes.id;`
      return (await shell.query(counts)).map(Number)
    },
    async copySandboxes(copies) {
      await api.stop('SIGKILL')
      await copyRecords(shell, copies)
      await nodes.copySandboxes(copies)
      return timed(() => api.start())
    },
    async pids() {
      const database = await shell.query('select pid from pg_stat_activity;')
      return { api: [api.pid()], nodes: [nodes.pid], database: database.map(Number) }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function createDatabase({ url }: PostgresServer, name: string): Promise<void> {
  await using shell = await openPsql(`${url}/postgres`)
  await shell.query(`create database ${name};`)
}

/** The store knows the epoch of a node once the api has reached it. */
async function waitUntilRegistered(shell: DatabaseShell, nodeCount: number): Promise<void> {
  const registered = 'select count(*) from nodes where epoch is not null;'
  const isComplete = async () => Number((await shell.query(registered))[0]) === nodeCount
  await waitFor('the api to reach all nodes', isComplete, {
    timeoutMs: joinLimitMs,
    intervalMs: 500,
  })
}

interface NodesProcess {
  readonly pid: number
  copySandboxes(copies: number): Promise<void>
}

async function startNodes(
  opened: AsyncDisposableStack,
  env: NodeJS.ProcessEnv,
  args: readonly string[],
): Promise<NodesProcess> {
  const child = spawn(process.execPath, [program, ...args], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  opened.defer(async () => {
    // While nodes join, the process reads nothing.
    child.kill('SIGKILL')
    await exit
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const waitForLine = (line: string) => {
    const hasCome = () => {
      if (child.exitCode !== null) throw new Error(`the simulated nodes ended: ${child.exitCode}`)
      return output.includes(line)
    }
    return waitFor(`the simulated nodes to write ${line}`, hasCome, { timeoutMs: joinLimitMs })
  }
  await waitForLine('ready')
  return {
    pid: child.pid ?? 0,
    async copySandboxes(copies) {
      output = ''
      child.stdin.write(`${copies}\n`)
      await waitForLine('copied')
    },
  }
}
