import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Answer, Request } from '@atoll/egress/control'
import { waitFor } from '@atoll/kit/wait'
import { keyOfSources } from '../linux/files/source-key.ts'
import { findProcesses, identify, killProcess } from '../linux/processes/process.ts'
import { connectToEgress } from './egress-connection.ts'
import type { EgressConnection } from './egress-connection.ts'

/** A connection to an egress process that got all rules, with its first answer. */
export interface OpenedEgress {
  readonly connection: EgressConnection
  readonly answer: Answer
}

/**
 * Connects to the egress process that listens on `path`, or starts one. Replaces a process of another build. Sends
 * `firstRequest`, and ends all other egress processes of this installation.
 */
export async function openEgressProcess(parts: {
  readonly path: string
  readonly logPath: string
  /** Port for DNS queries that a new process should take, if it is free. */
  readonly namePort: number
  readonly firstRequest: () => Request
}): Promise<OpenedEgress> {
  const { path } = parts
  const build = await keyOfSources(repository, sources, process.version)
  const existing = await connectToEgress(path)
  // A process of another build may not understand the request.
  const answer = await existing?.ask(parts.firstRequest()).catch(() => undefined)
  if (existing && answer?.build === build)
    return await keepOnly({ connection: existing, answer }, path)
  existing?.close()
  await killEgressProcesses(path)
  await start([path, build, String(parts.namePort)], parts.logPath)
  const connection = await connectToEgress(path)
  if (!connection) {
    throw new Error(`the egress process does not listen on ${path}; its log is ${parts.logPath}`)
  }
  try {
    const first = await connection.ask(parts.firstRequest())
    return await keepOnly({ connection, answer: first }, path)
  } catch (error) {
    connection.close()
    throw error
  }
}

async function keepOnly(opened: OpenedEgress, path: string): Promise<OpenedEgress> {
  try {
    await killEgressProcesses(path, opened.answer.pid)
    return opened
  } catch (error) {
    opened.connection.close()
    throw error
  }
}

/**
 * Kills all egress processes except `exceptPid`, also unreachable ones: two agents started in quick succession may each have
 * started one. Programs in sandboxes may use the same arguments, but run in other PID namespaces.
 */
export async function killEgressProcesses(path: string, exceptPid?: number): Promise<void> {
  const all = await findProcesses((args) => args.includes(path))
  const others = all.filter((pid) => pid !== exceptPid && isInOurNamespace(pid))
  others.forEach(killProcess)
  const left = () => others.some((pid) => identify(pid) !== undefined)
  await waitFor('the end of the egress process', () => !left(), { timeoutMs: 30_000 })
}

function isInOurNamespace(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync('/proc/self/ns/pid')
  } catch {
    return false // the process is gone
  }
}

async function start(args: readonly string[], logPath: string): Promise<void> {
  const program =
    typeof bundledPrograms === 'undefined'
      ? join(repository, 'apps/egress/src/main.ts')
      : join(bundledPrograms, 'egress.mjs')
  const log = openSync(logPath, 'a', 0o600)
  const child = spawn(process.execPath, [program, ...args], {
    detached: true,
    cwd: '/',
    env: {}, // the server's environment has secrets
    stdio: ['ignore', 'pipe', log],
  })
  closeSync(log)
  child.unref()
  const { stdout } = child
  const ready = stdout && once(stdout, 'data')
  const failed = once(child, 'exit').then(() => {
    throw new Error(`the egress process did not start; its log is ${logPath}`)
  })
  const startTimeout = setTimeout(() => child.kill('SIGKILL'), startLimitMs)
  await Promise.race([ready, failed]).finally(() => clearTimeout(startTimeout))
  failed.catch(() => {})
  stdout?.destroy()
}

const startLimitMs = 20_000

const repository = join(import.meta.dirname, '../../../..')

/** Folder of the bundles (`tools/bundle`), in bundles only. */
declare const bundledPrograms: string | undefined

/** Source files of the egress process: a process of another build is replaced. */
const sources = [
  'apps/egress/src/**/*.ts',
  'packages/contracts/src/network/*.ts',
  'packages/kit/src/**/*.ts',
  'package-lock.json',
]
