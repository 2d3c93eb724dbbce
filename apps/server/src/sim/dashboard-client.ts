import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { simulateNode } from '@atoll/simulated-node/node'
import { silentLogger } from '@atoll/kit/log'
import { loadServerConfig } from '../config.ts'
import { startServer } from '../server.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly json: unknown
}

export interface AskOptions {
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

/** A whole server on a simulated node, and a browser's requests to its dashboard. */
export async function startDashboardUnderTest(env: Record<string, string> = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-dashboard-'))
  const node = simulateNode()
  const config = loadServerConfig({
    ...{ ATOLL_DATA_DIR: dataDir, ATOLL_LISTEN: '127.0.0.1:0' },
    ...env,
  })
  const start = () =>
    startServer(config, {
      log: silentLogger,
      startNode: async () => ({ transport: node.transport, async close() {} }),
    })
  let server = await start()
  const apiKey = server.firstCredentials?.apiKey ?? ''
  const hostOf = () => `ui.localhost:${new URL(server.apiUrl).port}`
  const ask = (method: string, path: string, { headers, body }: AskOptions = {}) =>
    send(new URL(server.apiUrl), {
      ...{ method, path, body },
      headers: {
        host: hostOf(),
        ...(method !== 'GET' && { origin: `http://${hostOf()}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    })
  return {
    dataDir,
    apiKey,
    node,
    ask,
    /** Address of the API. The dashboard has the same port on `ui.localhost`. */
    url: () => server.apiUrl,
    /** Calls the platform API with the first key. */
    async platform(method: string, path: string, body?: unknown): Promise<Answer> {
      const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' }
      return send(new URL(server.apiUrl), { method, path, headers, body })
    },
    /** Signs in and returns the cookie. */
    async signIn(path: string, body: object): Promise<string> {
      const { headers } = await ask('POST', path, { body })
      return String(headers['set-cookie']).split(';', 1)[0] ?? ''
    },
    /** `between` may change files of the data directory. */
    async restart(between: () => Promise<void> = async () => {}) {
      await server.close()
      await between()
      server = await start()
    },
    async [Symbol.asyncDispose]() {
      await server.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

export type DashboardUnderTest = Awaited<ReturnType<typeof startDashboardUnderTest>>

function send(
  { hostname, port }: URL,
  call: {
    readonly method: string
    readonly path: string
    readonly headers: Record<string, string>
    readonly body: unknown
  },
): Promise<Answer> {
  const { method, path, headers, body } = call
  return new Promise((resolve, reject) => {
    const sent = request({ host: hostname, port, method, path, headers }, async (res) => {
      const text = Buffer.concat(await Array.fromAsync(res)).toString('utf8')
      const isJson = /json/.test(res.headers['content-type'] ?? '') && text !== ''
      const json: unknown = isJson ? JSON.parse(text) : undefined
      resolve({ status: res.statusCode ?? 0, headers: res.headers, text, json })
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
