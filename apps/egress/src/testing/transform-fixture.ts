import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { request as requestPlain } from 'node:http'
import type { ClientRequest, IncomingMessage, RequestListener, RequestOptions } from 'node:http'
import { createServer as createPlainServer } from 'node:http'
import { createServer as createSecureServer, request as requestSecure } from 'node:https'
import { buffer } from 'node:stream/consumers'
import { connect as connectSecure } from 'node:tls'
import { createDecisionCounts } from '../app/decision-counts.ts'
import { createSandboxes } from '../app/sandboxes.ts'
import { issueCertificate, createAuthority } from '../domain/certificates/authority.ts'
import type { EgressRules } from '@atoll/contracts/network/rules'
import type { Dialer, Route } from '../domain/route.ts'
import { handleConnection } from '../inbound/connection.ts'
import { createTerminator } from '../inbound/terminator.ts'
import { createTlsDialer } from '../net/tls-dialer.ts'

export const name = 'api.example.com'
export const secret = 'Bearer s3cr3t'
const address = '127.0.0.1'

export interface FixtureOptions {
  readonly protocol: 'tls' | 'http'
  readonly respond?: RequestListener
  /** Whether the proxy trusts the CA of the upstream server. */
  readonly isTrusted?: boolean
  readonly domains?: NonNullable<EgressRules['transforms']>['domains']
  readonly rules?: Partial<EgressRules>
  /** Destination port that the sandbox dials. */
  readonly port?: number
  /** Parameter of `createTerminator`. */
  readonly halfCloseTimeoutMs?: number
  /** Parameter of `createSandboxes`. */
  readonly now?: () => number
}

/** Starts an upstream server and the egress proxy on loopback. Requests pass all of the proxy but name resolution. */
export async function openTransform(setting: FixtureOptions) {
  const { protocol, respond, isTrusted = true } = setting
  const resources = new AsyncDisposableStack()
  const [sandboxCa, upstreamCa] = [createAuthority(), createAuthority()]
  const domains = setting.domains ?? [{ pattern: name, headers: { Authorization: secret } }]
  const rulesWith = (ruleDomains: typeof domains): EgressRules => ({
    allowOut: [],
    denyOut: [],
    allowNames: [],
    ...setting.rules,
    transforms: { domains: ruleDomains, authority: sandboxCa },
  })

  const { certificate, key } = issueCertificate(upstreamCa, name)
  const upstream =
    protocol === 'tls'
      ? createSecureServer({ cert: certificate, key }, respond)
      : createPlainServer(respond)
  const upstreamPort = await listen(upstream, resources)
  const dialled: Route[] = []
  const loopback = createLoopbackDialer(upstreamPort, dialled)
  const dialer = createTlsDialer(loopback, isTrusted ? [upstreamCa.certificate] : [])
  const sandboxes = createSandboxes(setting.now)
  sandboxes.replaceAll([], [{ address, rules: rulesWith(domains) }])
  const parts = {
    ...{ sandboxes, counts: createDecisionCounts() },
    terminator: createTerminator(setting.halfCloseTimeoutMs),
    dialer: () => dialer,
  }
  const passed: Promise<void>[] = []
  const proxy = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const dialledPort = setting.port ?? (protocol === 'tls' ? 443 : 80)
    Object.defineProperty(socket, 'localPort', { value: dialledPort })
    passed.push(handleConnection(socket, parts))
  })
  const port = await listen(proxy, resources)
  const secure = { servername: name, ca: sandboxCa.certificate }

  return {
    upstream,
    dialled,
    passed,
    port,
    /** Sends a request as a program in the sandbox does. */
    ask(options: RequestOptions = {}): ClientRequest {
      const all = { host: address, port, headers: { Host: name }, ...options }
      const request = protocol === 'tls' ? requestSecure({ ...all, ...secure }) : requestPlain(all)
      return request.on('error', () => {}) // callers get errors while they wait for the response
    },
    /** Opens a connection to the proxy for raw bytes. */
    async open(servername = name): Promise<Socket> {
      if (protocol === 'http') return connect({ host: address, port, allowHalfOpen: true })
      const socket = connectSecure({ host: address, port, ...secure, servername })
      await once(socket, 'secureConnect')
      return socket
    },
    change: (changed: typeof domains) => sandboxes.set({ address, rules: rulesWith(changed) }),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

/** Connects every route to one port of the loopback interface, and records the routes. */
function createLoopbackDialer(port: number, dialled: Route[]): Dialer {
  return {
    async dial(route, _destination, signal) {
      dialled.push(route)
      const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true })
      socket.on('error', () => {})
      await once(socket, 'connect', { signal })
      return { socket, initialBytes: Buffer.alloc(0) }
    },
  }
}

async function listen(server: Server, resources: AsyncDisposableStack): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.listen(0, address)
  await once(server, 'listening')
  resources.defer(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a TCP server has a port
  return (server.address() as AddressInfo).port
}

export interface Answered {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Ends the request and reads the whole response. */
export async function answerTo(request: ClientRequest, body?: string | Buffer): Promise<Answered> {
  request.end(body)
  const [incoming]: IncomingMessage[] = await once(request, 'response')
  if (!incoming) throw new Error('no response')
  const { statusCode = 0, headers } = incoming
  return { status: statusCode, headers, body: (await buffer(incoming)).toString() }
}
