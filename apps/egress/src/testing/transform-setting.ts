import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { request as requestPlain } from 'node:http'
import type { ClientRequest, IncomingMessage, RequestListener, RequestOptions } from 'node:http'
import { createServer as createPlainServer } from 'node:http'
import { createServer as createSecureServer, request as requestSecure } from 'node:https'
import { buffer } from 'node:stream/consumers'
import { connect as connectSecure } from 'node:tls'
import { createSandboxes } from '../app/sandboxes.ts'
import { certify, createAuthority } from '../domain/authority.ts'
import type { SandboxRules } from '../domain/destination.ts'
import type { Way } from '../domain/way.ts'
import { pass } from '../inbound/passage.ts'
import { createTerminator } from '../inbound/terminator.ts'
import { createSecureDialer } from '../net/dial-secure.ts'

export const name = 'api.example.com'
export const secret = 'Bearer s3cr3t'
const address = '127.0.0.1'

export interface Setting {
  readonly protocol: 'tls' | 'http'
  readonly respond?: RequestListener
  /** Who certifies the server. */
  readonly isTrusted?: boolean
  readonly domains?: NonNullable<SandboxRules['transforms']>['domains']
  readonly rules?: Partial<SandboxRules>
  /** That the sandbox means. */
  readonly port?: number
  /** As createTerminator has it. */
  readonly farewellLimitMs?: number
  /** As createSandboxes has it. */
  readonly now?: () => number
}

/** A sandbox that goes to a server, both on the loopback, through all that lies between but for looking up names. */
export async function openTransform(setting: Setting) {
  const { protocol, respond, isTrusted = true } = setting
  const made = new AsyncDisposableStack()
  const [inner, outer] = [createAuthority(), createAuthority()]
  const domains = setting.domains ?? [{ pattern: name, headers: { Authorization: secret } }]
  const rulesWith = (changed: typeof domains): SandboxRules => ({
    allowOut: [],
    denyOut: [],
    allowNames: [],
    ...setting.rules,
    transforms: { domains: changed, authority: inner },
  })

  const { certificate, key } = certify(outer, name)
  const upstream =
    protocol === 'tls'
      ? createSecureServer({ cert: certificate, key }, respond)
      : createPlainServer(respond)
  const upstreamPort = await listen(upstream, made)
  const dialled: Way[] = []
  const loopback = {
    async dial(way: Way, _target: unknown, signal: AbortSignal) {
      dialled.push(way)
      const place = { host: address, port: upstreamPort }
      const socket = connect({ ...place, allowHalfOpen: true, noDelay: true })
      socket.on('error', () => {})
      await once(socket, 'connect', { signal })
      return { socket, first: Buffer.alloc(0) }
    },
  }
  const dialer = createSecureDialer(loopback, isTrusted ? [outer.certificate] : [])
  const sandboxes = createSandboxes(setting.now)
  sandboxes.begin([], [{ address, rules: rulesWith(domains) }])
  const parts = {
    sandboxes,
    terminator: createTerminator(setting.farewellLimitMs),
    dialer: () => dialer,
  }
  const passed: Promise<void>[] = []
  const doorway = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const meant = setting.port ?? (protocol === 'tls' ? 443 : 80)
    Object.defineProperty(socket, 'localPort', { value: meant })
    passed.push(pass(socket, parts))
  })
  const port = await listen(doorway, made)
  const secure = { servername: name, ca: inner.certificate }

  return {
    upstream,
    dialled,
    passed,
    port,
    /** As a program in the sandbox does. */
    ask(options: RequestOptions = {}): ClientRequest {
      const all = { host: address, port, headers: { Host: name }, ...options }
      const asked = protocol === 'tls' ? requestSecure({ ...all, ...secure }) : requestPlain(all)
      return asked.on('error', () => {}) // who waits for an answer hears of it
    },
    /** A connection by which anything can be said. */
    async open(servername = name): Promise<Socket> {
      if (protocol === 'http') return connect({ host: address, port, allowHalfOpen: true })
      const socket = connectSecure({ host: address, port, ...secure, servername })
      await once(socket, 'secureConnect')
      return socket
    },
    change: (changed: typeof domains) => sandboxes.set({ address, rules: rulesWith(changed) }),
    [Symbol.asyncDispose]: () => made.disposeAsync(),
  }
}

async function listen(server: Server, made: AsyncDisposableStack): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.listen(0, address)
  await once(server, 'listening')
  made.defer(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  return (server.address() as AddressInfo).port
}

export interface Answered {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Ends the request, and reads all of its answer. */
export async function answerTo(asked: ClientRequest, body?: string | Buffer): Promise<Answered> {
  asked.end(body)
  const [incoming]: IncomingMessage[] = await once(asked, 'response')
  if (!incoming) throw new Error('no response')
  const { statusCode = 0, headers } = incoming
  return { status: statusCode, headers, body: (await buffer(incoming)).toString() }
}
