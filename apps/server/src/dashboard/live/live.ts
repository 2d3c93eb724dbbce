/** The live connection of a page: everything that changes by itself comes over one WebSocket. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { Fault } from '@atoll/kit/fault'
import type { Recordings } from '../recordings/recordings.ts'
import type { Upstream } from '../upstream.ts'
import type { Channel, ChannelPort } from './channel.ts'
import { serveConnection } from './connection.ts'
import type { OpenRequest } from './messages.ts'
import { openTerminal } from './terminal.ts'
import { openWatch } from './watch.ts'

export interface LiveSession {
  readonly token: string
  readonly apiKey: string
}

export interface Live {
  /** Takes over the connection of a request whose origin and session are checked. */
  accept(session: LiveSession, req: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Ends the connections of a session. */
  endSession(token: string): void
  close(): void
}

export interface LiveParts {
  readonly platform: Upstream
  readonly envd: Upstream
  readonly envdUrl: string
  readonly recordings: Recordings
  describeKey(apiKey: string): Promise<{ readonly teamId: string } | undefined>
  /** False once the session has expired or was closed. */
  isSession(token: string): boolean
  /** Ends the session, because the platform API refused its key. */
  onKeyRefused(token: string): Promise<void>
}

export const livePath = '/bff/live'

const maxConnections = 500
const maxConnectionsOfSession = 32
const maxMessageBytes = 128 * 1024
const sessionCheckMs = 5_000
/** Close code for a session that has ended. The page shows the sign-in page. */
const signedOutCode = 4401

export function createLive(parts: LiveParts): Live {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: maxMessageBytes })
  const bySession = new Map<string, Set<() => void>>()

  const openChannel = (request: OpenRequest, port: ChannelPort, session: LiveSession): Channel => {
    const target = { ...parts, apiKey: session.apiKey }
    if ('terminal' in request) {
      const findTeam = async () => requireTeam(await parts.describeKey(session.apiKey))
      return openTerminal(request.terminal, port, { ...target, findTeam })
    }
    const onKeyRefused = () => void parts.onKeyRefused(session.token).catch(() => {})
    return openWatch(request.watch, port, { ...target, onKeyRefused })
  }

  return {
    accept(session, req, socket, head) {
      const { token } = session
      const own = bySession.get(token) ?? new Set()
      if (sockets.clients.size >= maxConnections || own.size >= maxConnectionsOfSession) {
        throw new Fault(
          'exhausted',
          'live_connections',
          `The dashboard has ${own.size} open pages of this session and ${sockets.clients.size} in all. Close some.`,
        )
      }
      sockets.handleUpgrade(req, socket, head, (client) => {
        const closing = new AbortController()
        const end = () => {
          closing.abort()
          client.close(signedOutCode, 'signed out')
        }
        bySession.set(token, own.add(end))
        const timer = setInterval(() => {
          if (!parts.isSession(token)) end()
        }, sessionCheckMs)
        client.once('close', () => {
          clearInterval(timer)
          closing.abort()
          own.delete(end)
          if (own.size === 0) bySession.delete(token)
        })
        serveConnection(client, {
          openChannel: (request, port) => openChannel(request, port, session),
          signal: closing.signal,
        })
      })
    },
    endSession(token) {
      for (const end of bySession.get(token) ?? []) end()
    },
    close() {
      for (const client of sockets.clients) client.terminate()
    },
  }
}

function requireTeam(team: { readonly teamId: string } | undefined): string {
  if (team) return team.teamId
  throw new Fault('unauthenticated', 'no_session', 'The API key of this session was deleted.')
}
