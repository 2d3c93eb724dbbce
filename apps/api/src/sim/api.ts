import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '@atoll/kit/clock'
import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { startApi } from '../api.ts'
import type { Api, FirstCredentials } from '../api.ts'
import { createFirstTeam } from '../app/bootstrap.ts'
import { loadApiConfig } from '../config.ts'
import { openStores } from '../db/stores.ts'
import type { Stores } from '../db/stores.ts'
import { simulateNode } from './node.ts'
import type { SimulatedNode } from './node.ts'
import { makeStore, shareStore } from './store.ts'
import type { StoreUnderTest } from './store.ts'

/** Complete API on a real port, with a simulated node and two teams, for behavior tests. */
export interface ApiUnderTest extends AsyncDisposable {
  readonly node: SimulatedNode
  readonly url: string
  readonly folder: string
  readonly store: StoreUnderTest
  /** Credentials of two separate teams. */
  readonly ours: FirstCredentials
  readonly theirs: FirstCredentials
  /** Sends a request as our team, unless `headers` has other credentials. */
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
  /** Resumes a sandbox like the edge does. */
  readonly wake: Api['wake']
  /** Creates a sandbox for our team and returns its ID. */
  create(fields?: object): Promise<string>
  /** Waits until `count` requests have arrived and have reached the node operation that the test holds. */
  untilHeld(count: number): Promise<void>
  stop(): Promise<void>
  /**
   * Stops the API, lets `meddle` change the store, and starts the API again: can reproduce the state after any crash.
   */
  withStores<T>(meddle: (stores: Stores) => Promise<T>): Promise<T>
  restart(): Promise<void>
}

export interface CallOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Parsed body; undefined if empty or not JSON. */
  readonly json: unknown
}

export interface ApiOptions {
  readonly clock?: Clock
  readonly env?: Readonly<Record<string, string>>
  /** Existing store to use; the caller disposes of it. */
  readonly store?: StoreUnderTest
  /** Starts another process that shares the store, node and teams of this API. */
  readonly beside?: ApiUnderTest
}

export async function startApiUnderTest(options: ApiOptions = {}): Promise<ApiUnderTest> {
  const { beside } = options
  const records = options.store ?? (await (beside ? shareStore(beside.store) : makeStore()))
  const { folder, location } = records
  const config = loadApiConfig({ ...options.env, ...records.env })
  const clock = options.clock ?? systemClock
  const node = beside?.node ?? simulateNode()
  const useStores = async <T>(use: (stores: Stores) => Promise<T>): Promise<T> => {
    const stores = await openStores(location)
    return use(stores).finally(() => stores.close())
  }

  const teams: FirstCredentials[] = beside ? [beside.ours, beside.theirs] : []
  if (!beside)
    await useStores(async (stores) => {
      const anyNumber = { ...stores.teams, isEmpty: async () => true }
      const keep = async (credentials: FirstCredentials) => void teams.push(credentials)
      await createFirstTeam({ teams: anyNumber, clock }, keep)
      await createFirstTeam({ teams: anyNumber, clock }, keep)
    })
  const [ours, theirs] = teams
  if (!ours || !theirs) throw new Error('the teams were not made')

  let api: Api | undefined
  const start = async () => {
    api = await startApi(config, { node: node.transport, log: silentLogger, clock })
  }
  const stop = async () => {
    await api?.close() // keep `api` set, like a server that still accepts requests while it stops
  }
  await start()
  let openRequests = 0
  // No keep-alive timeout: a client may reuse a connection after a slow test.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    openRequests += 1
    response.once('close', () => (openRequests -= 1))
    api?.handler(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${portOf(server.address())}`

  const call: ApiUnderTest['call'] = (method, path, { headers, ...rest } = {}) =>
    send(url, method, path, { headers: headers ?? { 'x-api-key': ours.apiKey }, ...rest })
  return {
    node,
    url,
    folder,
    store: records,
    ours,
    theirs,
    call,
    wake: (request, signal) =>
      api?.wake(request, signal) ?? Promise.reject(new Error('the API does not run')),
    async create(fields = {}) {
      const reply = await call('POST', '/v2/sandboxes', { body: { templateID: 'base', ...fields } })
      if (reply.status !== 201) throw new Error(`create answered ${reply.status}: ${reply.text}`)
      return String(Object(reply.json).sandboxID)
    },
    async untilHeld(count) {
      await waitFor(`${count} requests to arrive`, () => openRequests === count)
      // Give the held requests time: each of these calls reads the store as much as a request does before it reaches
      // the node.
      for (let reads = 0; reads < 10; reads += 1) await call('GET', '/v2/sandboxes')
    },
    stop,
    async withStores(meddle) {
      await stop()
      const result = await useStores(meddle)
      await start()
      return result
    },
    async restart() {
      await stop()
      await start()
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await stop()
      if (!options.store) await records[Symbol.asyncDispose]()
    },
  }
}

async function send(
  base: string,
  method: string,
  path: string,
  { body, headers, signal }: CallOptions,
): Promise<Reply> {
  const response = await fetch(`${base}${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  const json: unknown = isJson && text ? JSON.parse(text) : undefined
  return { status: response.status, headers: response.headers, text, json }
}

function portOf(address: string | AddressInfo | null): number {
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}

/** Clock that moves only on `advance`. */
export function manualClock(start = '2026-01-01T00:00:00.000Z') {
  let now = Date.parse(start)
  return {
    now: () => new Date(now),
    advance: (seconds: number) => void (now += seconds * 1000),
  }
}
