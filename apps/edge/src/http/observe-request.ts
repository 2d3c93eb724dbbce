import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Refusal } from '../domain/refusal.ts'
import type { Target } from '../domain/route.ts'
import { responseFor } from './error-response.ts'

/** A finished request or WebSocket, for the metrics and the access log. */
export interface EdgeRequest {
  readonly kind: 'request' | 'upgrade'
  readonly method: string
  /** Without the query, which may hold a signature. */
  readonly path: string
  readonly client: string
  readonly status: number
  /** Why the edge itself answered. */
  readonly refusal?: Refusal['kind']
  readonly sandboxId?: string
  readonly port?: number
  readonly durationMs: number
  /** Bytes on the connection of the client since its previous request, heads included. */
  readonly bytesReceived: number
  readonly bytesSent: number
}

export type OnEdgeRequest = (request: EdgeRequest) => void

interface RequestNotes {
  admitted(target: Target): void
  refused(refusal: Refusal): void
}

const maxPathLength = 200

/** Returns a function that watches a request until it has ended. Without a response it is an upgrade. */
export function createRequestObserver(
  onRequest: OnEdgeRequest,
): (req: IncomingMessage, res?: ServerResponse) => RequestNotes {
  /** Bytes that were reported already: a connection carries one request after another. */
  const reported = new WeakMap<Socket, { readonly read: number; readonly written: number }>()

  return (req, res) => {
    const started = performance.now()
    const { socket } = req
    const client = socket.remoteAddress ?? ''
    let target: Target | undefined
    let refusal: Refusal | undefined
    const report = () => {
      const before = reported.get(socket) ?? { read: 0, written: 0 }
      const now = { read: socket.bytesRead, written: socket.bytesWritten }
      reported.set(socket, now)
      const sandboxId = refusal && 'sandboxId' in refusal ? refusal.sandboxId : target?.sandboxId
      onRequest({
        kind: res ? 'request' : 'upgrade',
        method: req.method ?? '',
        path: (req.url ?? '').replace(/[?#].*$/s, '').slice(0, maxPathLength),
        client,
        status: refusal ? responseFor(refusal).status : (res?.statusCode ?? 101),
        ...(refusal && { refusal: refusal.kind }),
        ...(sandboxId !== undefined && { sandboxId }),
        ...(target && { port: target.port }),
        durationMs: performance.now() - started,
        bytesReceived: now.read - before.read,
        bytesSent: now.written - before.written,
      })
    }
    if (res) res.once('close', report)
    else socket.once('close', report)
    return {
      admitted(admitted) {
        target = admitted
      },
      refused(given) {
        refusal = given
      },
    }
  }
}
