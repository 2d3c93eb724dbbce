/** Composition root of the edge, which routes each request to its sandbox and proxies the bytes. */
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Transport } from '@connectrpc/connect'
import type { Logger } from '@atoll/kit/log'
import { createFleetDirectory } from './app/fleet-directory.ts'
import type { Locate } from './app/fleet-directory.ts'
import { createSharedWakes } from './app/shared-wakes.ts'
import type { EdgeConfig } from './config.ts'
import type { IsTrustedProxy } from './domain/forwarded.ts'
import { isSandboxTraffic } from './domain/route.ts'
import type { DialSandbox } from './domain/sandbox.ts'
import type { FindSigner } from './domain/signed-file.ts'
import type { Wake } from './domain/wake.ts'
import { refuse } from './http/error-response.ts'
import { createRequestObserver } from './http/observe-request.ts'
import type { OnEdgeRequest } from './http/observe-request.ts'
import { originHeaders } from './http/headers.ts'
import { proxyRequest } from './http/proxy.ts'
import type { ProxyContext } from './http/sandbox-connection.ts'
import { createRequestServer } from './http/serve-request.ts'
import { proxyUpgrade, responseOn, shouldUpgrade } from './http/upgrade.ts'
import { nodeSandboxSource } from './nodes/source.ts'

export type { EdgeRequest } from './http/observe-request.ts'
export type { DialSandbox } from './domain/sandbox.ts'
export type { FindSigner } from './domain/signed-file.ts'
export type { Wake, WakeResult } from './domain/wake.ts'

export interface Edge {
  /** True if the request is for a sandbox. Used on a port shared with the platform API. */
  claims(req: IncomingMessage): boolean
  handle(req: IncomingMessage, res: ServerResponse): void
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Adds a node of a fleet. Returns a function that removes it and resets the connections to its sandboxes. */
  addNode(node: RemoteNode): () => Promise<void>
  /** Resets open connections. Sandboxes keep running. */
  close(): Promise<void>
}

export interface RemoteNode {
  readonly id: string
  readonly transport: Transport
  readonly dial: DialSandbox
}

/** Options of the HTTP server. Streams may last for days, and clients close idle connections first. */
export const edgeServerOptions = {
  requestTimeout: 0,
  headersTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  keepAliveTimeout: 620_000,
  shouldUpgradeCallback: shouldUpgrade,
} satisfies ServerOptions

export interface EdgeParts {
  /** Transports for `NodeService` of all nodes. */
  readonly nodes: readonly Transport[]
  readonly log: Logger
  readonly config?: EdgeConfig
  /** Maximum of open requests and WebSockets, to all sandboxes together. */
  readonly maxRequests?: number
  /** Finds the sandbox that signed a URL without a sandbox ID. Provided by the api, which knows the tokens. */
  readonly findSigner?: FindSigner
  /** Finds the node of a sandbox that no watch has reported. Absent: all nodes are asked. */
  readonly locate?: Locate | undefined
  /** How long a request waits for the node of its sandbox while that node does not answer. Used with `locate`. */
  readonly holdMs?: number | undefined
  /** Resumes a paused sandbox. Provided by the api, which owns the records. */
  readonly wake?: Wake
  /** Domain of sandbox host names, without a port. Undefined: host names may have any domain. */
  readonly domain?: string | undefined
  /** Set: programs in sandboxes get X-Forwarded-* headers, taken from the request if such a proxy sent it. */
  readonly isTrustedProxy?: IsTrustedProxy | undefined
  /** Receives each finished request. */
  readonly onRequest?: OnEdgeRequest | undefined
  /** How long a request waits for its sandbox. Set by tests. */
  readonly wakeLimitMs?: number
}

export function createEdge(parts: EdgeParts): Edge {
  const { log } = parts
  const sources = parts.nodes.map((transport) => nodeSandboxSource(transport))
  const directory = createFleetDirectory(sources, log, parts.locate, parts.holdMs)
  const maxOpenPerSandbox = parts.config?.ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX
  const wakes = parts.wake && createSharedWakes(parts.wake, log)
  const { findSigner, wakeLimitMs, domain, isTrustedProxy, maxRequests: maxOpen } = parts
  const context = {
    ...{ directory, maxOpen, maxOpenPerSandbox, findSigner, wakes, wakeLimitMs, domain },
  }
  const observe = parts.onRequest && createRequestObserver(parts.onRequest)
  const closing = new AbortController()
  const serve = createRequestServer({ context, log, closing: closing.signal })
  const withOrigin = (req: IncomingMessage, admitted: ProxyContext) =>
    addOrigin(req, admitted, isTrustedProxy)

  return {
    claims: (req) => isSandboxTraffic(req, domain),

    handle(req, res) {
      const note = observe?.(req, res)
      serve(req, {
        isRaw: false,
        refuse(refusal) {
          note?.refused(refusal)
          refuse(req, res, refusal)
        },
        proxy(admitted) {
          note?.admitted(admitted.target)
          return proxyRequest(req, res, withOrigin(req, admitted))
        },
      })
    },

    upgrade(req, socket, head) {
      socket.on('error', () => {}) // `close` follows
      const note = observe?.(req)
      serve(req, {
        isRaw: true,
        refuse(refusal) {
          note?.refused(refusal)
          refuse(req, responseOn(socket, req), refusal)
        },
        proxy(admitted) {
          note?.admitted(admitted.target)
          return proxyUpgrade(req, { socket, head }, withOrigin(req, admitted))
        },
      })
    },

    addNode: ({ id, transport, dial }) => directory.add(id, nodeSandboxSource(transport, dial)),

    async close() {
      closing.abort()
      await directory.close()
    },
  }
}

function addOrigin(
  req: IncomingMessage,
  admitted: ProxyContext,
  isTrusted: IsTrustedProxy | undefined,
): ProxyContext {
  return isTrusted
    ? { ...admitted, origin: originHeaders(req, admitted.target, isTrusted) }
    : admitted
}
