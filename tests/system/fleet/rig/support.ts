/** Helpers of the tests with several nodes. */
import { readFile, readdir } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import type { Rig, RigNode } from '../../../../tools/fleet/rig.ts'
import { shell } from '../../shell.ts'

/** No pre-warmed sandboxes: the tests compare the sandboxes of nodes with records, and the machine is small. */
export const testSettings = { ATOLL_POOL_MEMORY_MB: '0', ATOLL_READY_SLOTS: '1' }

const limitMs = 300_000
/** Longer than any test. */
export const lifetimeMs = 12 * 3_600_000

export interface Connection {
  readonly apiUrl: string
  readonly sandboxUrl: string
  readonly apiKey: string
}

/** Options of the SDK for one api and one edge, counted from 0. */
export function connectTo(rig: Rig, api = 0, edge = 0): Connection {
  const apiUrl = rig.apis[api]?.url ?? ''
  const sandboxUrl = rig.edges[edge]?.url ?? ''
  return { apiUrl, sandboxUrl, apiKey: rig.apiKey }
}

export function createSandbox(connection: Connection): Promise<Sandbox> {
  return Sandbox.create('base', {
    ...connection,
    timeoutMs: lifetimeMs,
    requestTimeoutMs: limitMs,
  })
}

export interface NodeSandbox {
  readonly sandboxId: string
  readonly phase: string
  readonly generation: number
}

/** Reads what a node itself has written about its sandboxes. */
export async function readSandboxes({ dataDir }: RigNode): Promise<NodeSandbox[]> {
  const folder = join(dataDir, 'cells')
  // A folder whose name begins with a dot is being removed.
  const names = (await readdir(folder).catch(() => [])).filter((name) => !name.startsWith('.'))
  const records = await Promise.all(names.map((name) => readRecord(join(folder, name))))
  return records.flatMap((record) => (record ? [record] : []))
}

interface StoredCell {
  readonly phase: string
  readonly owner?: { readonly sandboxId: string; readonly generation?: number }
}

async function readRecord(folder: string): Promise<NodeSandbox | undefined> {
  // The cell may be removed meanwhile.
  const text = await readFile(join(folder, 'cell.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const { phase, owner }: StoredCell = JSON.parse(text)
  return owner && { sandboxId: owner.sandboxId, phase, generation: owner.generation ?? 0 }
}

export async function nodeOf(rig: Rig, sandboxId: string): Promise<RigNode | undefined> {
  for (const node of rig.nodes) {
    const found = await readSandboxes(node)
    if (found.some((sandbox) => sandbox.sandboxId === sandboxId)) return node
  }
  return undefined
}

/** Creates sandboxes until one is on the node. Returns it, and kills the others. */
export async function createOn(rig: Rig, node: RigNode, connection: Connection): Promise<Sandbox> {
  const others: Sandbox[] = []
  try {
    for (let attempt = 0; attempt < 30; attempt += 1) {
      const sandbox = await createSandbox(connection)
      if ((await nodeOf(rig, sandbox.sandboxId)) === node) return sandbox
      others.push(sandbox)
    }
    throw new Error(`none of 30 sandboxes was created on ${node.name}`)
  } finally {
    await Promise.all(others.map((sandbox) => sandbox.kill()))
  }
}

/** Starts a program that runs until it is killed. Returns a command that prints `alive` while it runs. */
export async function startProgram(sandbox: Sandbox): Promise<string> {
  const handle = await sandbox.commands.run('sleep infinity', { background: true, timeoutMs: 0 })
  // The stream of its output would stay open.
  await handle.disconnect()
  return `kill -0 ${handle.pid} && echo alive`
}

/** Repeats the command until the sandbox answers. The error after a timeout has the last failure. */
export async function waitForShell(sandbox: Sandbox, command: string): Promise<string> {
  let last: unknown
  const attempt = async (): Promise<string | undefined> => {
    try {
      const { code, stdout, stderr } = await shell(sandbox, command, { timeoutMs: 60_000 })
      if (code !== 0) throw new Error(`the command ended with ${code}: ${stderr}`)
      return stdout
    } catch (error) {
      last = error
      return undefined
    }
  }
  try {
    return await waitFor(command, attempt, { timeoutMs: limitMs, intervalMs: 200 })
  } catch (error) {
    const message = `${String(error)} in ${sandbox.sandboxId}; last: ${String(last)}`
    throw new Error(message, { cause: error })
  }
}

/** Waits for a state of the fleet. */
export function until<T>(
  what: string,
  probe: () => Promise<T | undefined | false>,
  timeoutMs = limitMs,
): Promise<T> {
  return waitFor(what, probe, { timeoutMs, intervalMs: 250 })
}

export interface HttpReply {
  readonly status: number
  readonly body: string
}

/** Calls the platform API. Status 0: no answer. */
export async function callApi(
  { apiUrl, apiKey }: Connection,
  method: string,
  path: string,
  body?: unknown,
): Promise<HttpReply> {
  try {
    const headers = { 'X-API-Key': apiKey, 'Content-Type': 'application/json' }
    const signal = AbortSignal.timeout(60_000)
    const text = body === undefined ? null : JSON.stringify(body)
    const reply = await fetch(`${apiUrl}${path}`, { method, headers, signal, body: text })
    return { status: reply.status, body: await reply.text() }
  } catch (error) {
    return { status: 0, body: String(error) }
  }
}

/** Sends a request to an edge as a browser with the address of `getHost` does. Status 0: no answer. */
export function getHost(edgeUrl: string, host: string): Promise<HttpReply> {
  return new Promise((resolve) => {
    const outgoing = request(edgeUrl, { headers: { host }, timeout: 60_000 }, (reply) => {
      let body = ''
      reply.setEncoding('utf8').on('data', (text: string) => (body += text))
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, body }))
      reply.on('error', (error) => resolve({ status: 0, body: error.message }))
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('timeout')))
    outgoing.on('error', (error) => resolve({ status: 0, body: error.message }))
    outgoing.end()
  })
}
