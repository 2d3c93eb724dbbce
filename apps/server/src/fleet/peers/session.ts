/**
 * One HTTP/2 session to a peer, opened on demand and again after a loss.
 *
 * Every socket and session has an error listener from its first moment to its last: the session manager of the Connect
 * library lacks one while it connects and closes, so a machine that vanished would end the process.
 */
import { connect } from 'node:http2'
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  ClientSessionRequestOptions,
  OutgoingHttpHeaders,
} from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ListenAddress } from '../../listen-address.ts'
import { dialPeer } from './dial-peer.ts'
import { waitForDialTurn } from './dial-turns.ts'
import type { DialIdentity, ExpectedPeer } from './dial-peer.ts'

/** A session manager of the Connect library that can be closed. */
export interface PeerSession {
  readonly authority: string
  request(
    method: string,
    path: string,
    headers: OutgoingHttpHeaders,
    options: Omit<ClientSessionRequestOptions, 'signal'>,
  ): Promise<ClientHttp2Stream>
  notifyResponseByteRead(): void
  /** Ends the session and all calls on it. Later calls fail. */
  close(): void
}

export interface PeerSessionOptions {
  readonly address: ListenAddress
  readonly identity: { current(): DialIdentity }
  readonly expected: ExpectedPeer
  /** For tests. */
  readonly pingMs?: number
  readonly connectLimitMs?: number
}

export const baseUrl = 'https://atoll.internal'

const defaultPingMs = 20_000
const defaultConnectLimitMs = 5_000
const longestPauseMs = 2_000
const windowBytes = 4 * 2 ** 20

export function createPeerSession(options: PeerSessionOptions): PeerSession {
  const closing = new AbortController()
  let session: ClientHttp2Session | undefined
  let opening: Promise<ClientHttp2Session> | undefined
  let failures = 0

  const open = async (): Promise<ClientHttp2Session> => {
    await backOff(failures, closing.signal)
    await waitForDialTurn()
    const opened = await openSession(options, closing.signal)
    const forget = () => {
      if (session === opened) session = undefined
    }
    opened.once('goaway', forget)
    opened.once('close', forget)
    return opened
  }
  const current = async (): Promise<ClientHttp2Session> => {
    if (closing.signal.aborted) throw new Error('the connection to the peer was closed')
    if (session && !session.closed && !session.destroyed) return session
    opening ??= open().finally(() => (opening = undefined))
    try {
      session = await opening
      failures = 0
      return session
    } catch (error) {
      failures += 1
      throw error
    }
  }
  return {
    authority: baseUrl,
    async request(method, path, headers, requestOptions): Promise<ClientHttp2Stream> {
      try {
        const live = await current()
        const head = { ...headers, ':method': method, ':path': path }
        const stream = live.request(head, requestOptions)
        stream.on('error', () => {}) // the caller adds its own listener later
        return stream
      } catch (error) {
        throw unavailable(options, error)
      }
    },
    notifyResponseByteRead() {},
    close() {
      closing.abort(new Error('the connection to the peer was closed'))
      session?.destroy()
    },
  }
}

/** Waits longer after each failure. Spread by chance: after an outage, all peers would dial at the same moment. */
async function backOff(failures: number, signal: AbortSignal): Promise<void> {
  if (failures === 0) return
  const pauseMs = Math.min(100 * 2 ** failures, longestPauseMs)
  await sleep(pauseMs * (0.5 + Math.random()), undefined, { signal })
}

async function openSession(
  options: PeerSessionOptions,
  closing: AbortSignal,
): Promise<ClientHttp2Session> {
  const { pingMs = defaultPingMs, connectLimitMs = defaultConnectLimitMs } = options
  const socket = await dialPeer({
    ...options,
    identity: options.identity.current(),
    protocol: 'h2',
    signal: AbortSignal.any([closing, AbortSignal.timeout(connectLimitMs)]),
  })
  const opened = connect(baseUrl, {
    createConnection: () => socket,
    settings: { initialWindowSize: windowBytes, enablePush: false },
  })
  opened.on('error', () => {}) // `close` follows
  opened.setLocalWindowSize?.(windowBytes)
  keepAlive(opened, pingMs)
  return opened
}

function unavailable({ address, expected }: PeerSessionOptions, error: unknown): ConnectError {
  const { host, port } = address
  const message = `${expected.role} at ${host}:${port} does not answer: ${messageOf(error)}`
  return new ConnectError(message, Code.Unavailable, undefined, undefined, error)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Destroys the session when a ping is not answered until the next one: a cut network sends no error. */
function keepAlive(session: ClientHttp2Session, pingMs: number): void {
  let isWaiting = false
  const timer = setInterval(() => {
    if (isWaiting) return session.destroy(new Error('the peer does not answer pings'))
    isWaiting = true
    try {
      session.ping((error) => {
        if (!error) isWaiting = false
      })
    } catch {
      // The session is closing.
    }
  }, pingMs)
  timer.unref()
  session.once('close', () => clearInterval(timer))
}
