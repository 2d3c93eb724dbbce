/** The dashboard: an origin of its own, on which neither the edge nor the platform API answers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { DashboardBundle } from '@atoll/dashboard/build'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { isForHost } from './host.ts'
import { createPages } from './pages.ts'
import { findCrossOriginObjection } from './request-checks.ts'
import { sendFault } from './responses.ts'
import { createRoutes, requireSession } from './routes.ts'
import type { RouteParts } from './routes.ts'
import { findSandbox } from './sandbox-access.ts'
import { parseTerminalQuery, runTerminal } from './terminal.ts'

export interface Dashboard {
  claims(req: IncomingMessage): boolean
  handle(req: IncomingMessage, res: ServerResponse): void
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): Promise<void>
}

export interface DashboardParts extends RouteParts {
  readonly host: string
  readonly bundle: DashboardBundle
  readonly envdUrl: string
  readonly log: Logger
}

const maxTerminals = 500
const maxMessageBytes = 1024 * 1024
/** How often a terminal checks that its session, key and sandbox still exist. */
const recheckMs = 15_000

export function createDashboard(parts: DashboardParts): Dashboard {
  const { host, log } = parts
  const pages = createPages(parts.bundle)
  const routes = createRoutes(parts)
  const sockets = new WebSocketServer({ noServer: true, maxPayload: maxMessageBytes })
  const closing = new AbortController()

  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    const url = readUrl(req)
    if (!url.pathname.startsWith('/bff/')) return pages(req, res, url.pathname)
    refuseOtherOrigins(req)
    return routes(req, res, url)
  }

  const openTerminal = async (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    refuseOtherOrigins(req, true)
    const { pathname, searchParams } = readUrl(req)
    const id = /^\/bff\/sandboxes\/([a-z0-9]{1,63})\/terminal$/.exec(pathname)?.[1]
    const request = parseTerminalQuery(searchParams)
    if (!id || !request) throw new Fault('invalid', 'no_terminal', `There is no ${req.url}`)
    if (sockets.clients.size >= maxTerminals) {
      throw new Fault('exhausted', 'terminals', `${maxTerminals} terminals are open already`)
    }
    const find = () => findSandbox(parts.platform, requireSession(parts, req).apiKey, id)
    const access = await find()
    sockets.handleUpgrade(req, socket, head, (client) => {
      const timer = setInterval(() => {
        find().catch(() => client.close(1008, 'signed out, or the sandbox does not run'))
      }, recheckMs)
      client.once('close', () => clearInterval(timer))
      client.on('error', () => {}) // `close` follows
      void runTerminal(client, request, { url: parts.envdUrl, access, signal: closing.signal })
    })
  }

  return {
    claims: (req) => isForHost(req, host),
    handle(req, res) {
      answer(req, res).catch((error: unknown) => {
        if (!(error instanceof Fault)) log.warn({ err: error, event: 'dashboard.failure' })
        sendFault(res, error)
      })
    },
    upgrade(req, socket, head) {
      socket.on('error', () => {}) // `close` follows
      openTerminal(req, socket, head).catch((error: unknown) => {
        const status = error instanceof Fault && error.kind === 'unauthenticated' ? 401 : 403
        socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
      })
    },
    async close() {
      closing.abort()
      for (const client of sockets.clients) client.terminate()
      parts.platform.close()
      parts.envd.close()
    },
  }
}

/** Refuses absolute targets, which may name another host than the Host header does. */
function readUrl(req: IncomingMessage): URL {
  const target = req.url ?? ''
  if (!target.startsWith('/') || !URL.canParse(`http://dashboard${target}`)) {
    throw new Fault('invalid', 'target', 'The request target must be a path')
  }
  return new URL(`http://dashboard${target}`)
}

function refuseOtherOrigins(req: IncomingMessage, isUpgrade = false): void {
  const { method, headers } = req
  const objection = findCrossOriginObjection({ method, headers, isUpgrade })
  if (objection) throw new Fault('forbidden', 'cross_origin', objection)
}
