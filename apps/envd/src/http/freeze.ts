/**
 * POST /freeze: the node is about to save the memory of the sandbox. Connections do not survive that, and under gVisor
 * (20240729) worse than that: of an epoll set with two of them in it, nothing is ever reported again in the restored
 * copy but the end of one of them, over and over. So ours are reset now, with the connection of this call ended after its
 * answer. How many other programs still have with the outside is told in X-Connections, for the node to do something about
 * it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { refuseStranger } from './node-only.ts'

export interface FreezeDeps {
  readonly initToken?: string | undefined
  /** Resets all connections of the daemon but this one. */
  readonly cutConnections: (except: Socket) => void
  /** Those of all programs with the outside. */
  readonly countConnections: () => number
}

export function answerFreeze(
  request: IncomingMessage,
  response: ServerResponse,
  deps: FreezeDeps,
): void {
  if (refuseStranger(request, response, deps.initToken)) return
  request.resume()
  deps.cutConnections(request.socket)
  // One of them is this call's.
  const others = Math.max(0, deps.countConnections() - 1)
  const headers = { connection: 'close', 'cache-control': 'no-store', 'x-connections': others }
  response.writeHead(204, headers).end()
}
