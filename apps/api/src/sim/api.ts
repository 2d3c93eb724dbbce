import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '@atoll/kit/clock'
import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { startApi } from '../api.ts'
import type { Api, FirstCredentials } from '../api.ts'
import { createFirstTeam } from '../app/bootstrap.ts'
import type { ApiParts } from '../composition/core.ts'
import { loadApiConfig } from '../config.ts'
import { openStores } from '../db/stores.ts'
import type { Stores } from '../db/stores.ts'
import { simulateNode } from '@atoll/simulated-node/node'
import type { SimulatedNode } from '@atoll/simulated-node/node'
import { makeStore, shareStore, unsavedKeys } from './store.ts'
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
   * Stops the API, lets `change` edit the store, and starts the API again: can reproduce the state after any crash.
   */
  withStores<T>(change: (stores: Stores) => Promise<T>): Promise<T>
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
  /** First node. Default: a new one. */
  readonly node?: SimulatedNode
  readonly clock?: Clock
  readonly env?: Readonly<Record<string, string>>
  /** Existing store to use; the caller disposes of it. */
  readonly store?: StoreUnderTest
  /** Nodes besides the first one. */
  readonly others?: readonly SimulatedNode[]
  /** Starts the api of a fleet. */
  readonly fleet?: ApiParts['fleet']
  /** Starts another process that shares the store, node and teams of this API. */
  readonly beside?: ApiUnderTest
}

/** A fleet that no node has joined, so the api connects to none. */
export const fleetWithoutNodes: NonNullable<ApiParts['fleet']> = {
  connect() {
    throw new Error('no node has joined the fleet')
  },
  lostSeconds: 60,
  formatToken: (secret) => secret,
}

export async function startApiUnderTest(options: ApiOptions = {}): Promise<ApiUnderTest> {
  const { beside } = options
  const store = options.store ?? (await (beside ? shareStore(beside.store) : makeStore()))
  const clock = options.clock ?? systemClock
  const node = beside?.node ?? options.node ?? simulateNode()
  const others = options.others ?? []
  const [ours, theirs] = beside
    ? [beside.ours, beside.theirs]
    : await createTwoTeams(store.location, clock)
  const config = loadApiConfig({ ...options.env, ...store.env })
  const server = await startServer(() =>
    startApi(config, {
      nodes: [node, ...others].map(({ transport }) => transport),
      log: silentLogger,
      clock,
      fleet: options.fleet,
    }),
  )
  const { url, start, stop } = server

  const call: ApiUnderTest['call'] = (method, path, { headers, ...rest } = {}) =>
    send(url, method, path, { headers: headers ?? { 'x-api-key': ours.apiKey }, ...rest })
  return {
    ...{ node, url, folder: store.folder, store, ours, theirs, call, stop },
    wake: (request, signal) => server.api().wake(request, signal),
    async create(fields = {}) {
      const reply = await call('POST', '/v2/sandboxes', { body: { templateID: 'base', ...fields } })
      if (reply.status !== 201) throw new Error(`create answered ${reply.status}: ${reply.text}`)
      return String(Object(reply.json).sandboxID)
    },
    async untilHeld(count) {
      await waitFor(`${count} requests to arrive`, () => server.openRequests() === count)
      // Give the held requests time: each of these calls reads the store as much as a request does before it reaches
      // the node.
      for (let reads = 0; reads < 10; reads += 1) await call('GET', '/v2/sandboxes')
    },
    async withStores(change) {
      await stop()
      const result = await useStores(store.location, change)
      await start()
      return result
    },
    async restart() {
      await stop()
      await start()
    },
    async [Symbol.asyncDispose]() {
      await server.close()
      if (!options.store) await store[Symbol.asyncDispose]()
    },
  }
}

/** Serves an API on a port. The port stays open when the API stops, so that clients can reach it after a restart. */
async function startServer(startOne: () => Promise<Api>) {
  let api = await startOne()
  let openRequests = 0
  // No keep-alive timeout: a client may reuse a connection after a slow test.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    openRequests += 1
    response.once('close', () => (openRequests -= 1))
    api.handler(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // Keep `api` set, like a server that still accepts requests while it stops.
  const stop = () => api.close()
  return {
    url: `http://127.0.0.1:${portOf(server.address())}`,
    api: () => api,
    openRequests: () => openRequests,
    async start() {
      api = await startOne()
    },
    stop,
    async close() {
      server.closeAllConnections()
      server.close()
      await stop()
    },
  }
}

async function createTwoTeams(
  location: string,
  clock: Clock,
): Promise<readonly [FirstCredentials, FirstCredentials]> {
  return useStores(location, async (stores) => {
    const teams = { ...stores.teams, isEmpty: async () => true }
    const create = async () => {
      const credentials = await createFirstTeam({ teams, clock }, async () => {})
      if (!credentials) throw new Error('The store created no team for the test')
      return credentials
    }
    return [await create(), await create()]
  })
}

async function useStores<T>(location: string, use: (stores: Stores) => Promise<T>): Promise<T> {
  const stores = await openStores(location, unsavedKeys())
  return use(stores).finally(() => stores.close())
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
  if (address === null || typeof address === 'string')
    throw new Error('The server of the test listens on no port')
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
