/**
 * Where connections of sandboxes end whose requests are changed: here is the server that they mean, and their requests
 * are made anew.
 *
 * Threats: all that is said is a sandbox's. The name and what is done for it were decided before; nothing that comes
 * later changes them.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { cut, setCarrier } from './cut.ts'
import { createLeafContexts } from './leaf-contexts.ts'
import type { LeafContexts } from './leaf-contexts.ts'
import { relay } from './relay.ts'
import { createSession } from './session.ts'
import type { Leaving, Session } from './session.ts'
import { refuseConnect, relayUpgrade, shouldUpgrade } from './upgrade.ts'

export interface Terminator {
  /** Resolves when `inside` is closed. */
  terminate(inside: Socket, leaving: Leaving): Promise<void>
}

/** For so long nothing may happen on a connection whose client has ended its side. */
export function createTerminator(farewellLimitMs = 600_000): Terminator {
  const sessions = new WeakMap<Socket, Session>()
  const contexts = createLeafContexts()
  const server = createServer({
    shouldUpgradeCallback: shouldUpgrade,
    keepAliveTimeout: idleLimitMs,
    headersTimeout: headLimitMs,
    requestTimeout: 0, // bodies may take hours
    connectionsCheckingInterval: headLimitMs,
  })

  function within(req: IncomingMessage, handle: (session: Session) => void): void {
    const session = sessions.get(req.socket)
    try {
      if (session) handle(session)
      else cut(req.socket)
    } catch {
      cut(req.socket)
    }
  }

  const onRequest = (req: IncomingMessage, res: ServerResponse) =>
    within(req, (session) => {
      if (!session.begin(req, res, () => relay(req, res, session))) cut(req.socket)
    })
  // Who has said all may end his side and wait for the answer. The types do not know of it.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('request', onRequest)
  server.on('checkContinue', onRequest)
  server.on('upgrade', (req, _socket, head) =>
    within(req, (session) => relayUpgrade(req, head, session)),
  )
  server.on('connect', (req) => within(req, (session) => refuseConnect(req, session)))
  // It never listens, and looks after its time limits only from then on.
  server.emit('listening')

  return {
    async terminate(inside, leaving) {
      const closed = new Promise((resolve) => inside.once('close', resolve))
      const isSecure = leaving.transform.protocol === 'tls'
      const client = isSecure ? await secure(inside, leaving, contexts) : inside
      if (inside.destroyed) return
      client.setKeepAlive(true, keepAliveMs)
      // It may wait for an answer, or have left without a word.
      client.once('end', () => client.setTimeout(farewellLimitMs, () => cut(client)))
      sessions.set(client, createSession(client, leaving))
      server.emit('connection', client)
      await closed
    },
  }
}

async function secure(
  inside: Socket,
  { transform, ended }: Leaving,
  contexts: LeafContexts,
): Promise<TLSSocket> {
  const secured = new TLSSocket(inside, {
    isServer: true,
    secureContext: contexts(transform.authority, transform.name),
    ALPNProtocols: ['http/1.1', 'http/1.0'],
  })
  secured.on('error', () => {})
  setCarrier(secured, inside)
  const signal = AbortSignal.any([ended, AbortSignal.timeout(handshakeLimitMs)])
  await once(secured, 'secure', { signal })
  return secured
}

const handshakeLimitMs = 10_000
/** For the head of a request, and for the next one to begin. */
const headLimitMs = 30_000
const idleLimitMs = 120_000
const keepAliveMs = 60_000
