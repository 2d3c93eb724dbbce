/** The dashboard: an origin of its own, on which neither the edge nor the platform API answers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { DashboardBundle } from '@atoll/dashboard/build'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { createBulk } from './bulk/bulk-routes.ts'
import { isForHost } from './host.ts'
import { createLive, livePath } from './live/live.ts'
import { createPages } from './pages.ts'
import { findCrossOriginObjection } from './request-checks.ts'
import { sendFault, statusOfKind } from './responses.ts'
import { createRoutes, requireSession } from './routes.ts'
import type { RouteParts } from './routes.ts'

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

export function createDashboard(given: DashboardParts): Dashboard {
  const { host, log } = given
  const endSession = async (token: string) => {
    await given.sessions.close(token)
    live.endSession(token)
  }
  const parts = { ...given, sessions: { ...given.sessions, close: endSession } }
  const pages = createPages(parts.bundle)
  const bulk = createBulk(parts)
  const routes = createRoutes(parts, bulk)
  const live = createLive({
    ...parts,
    isSession: (token) => parts.sessions.findKey(token) !== undefined,
    onKeyRefused: endSession,
  })

  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    const url = readUrl(req)
    if (!url.pathname.startsWith('/bff/')) return pages(req, res, url.pathname)
    refuseOtherOrigins(req)
    return routes(req, res, url)
  }

  const openLive = (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    refuseOtherOrigins(req, true)
    const { pathname } = readUrl(req)
    if (pathname !== livePath) throw new Fault('not_found', 'no_path', `There is no ${pathname}`)
    live.accept(requireSession(parts, req), req, socket, head)
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
      try {
        openLive(req, socket, head)
      } catch (error) {
        const status = statusOfKind[Fault.from(error).kind]
        socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
      }
    },
    async close() {
      live.close()
      bulk.close()
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
