/** Composition root of the edge, which routes each request to its sandbox and proxies the bytes. */
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Transport } from '@connectrpc/connect'
import type { Logger } from '@atoll/kit/log'
import { admit, checkLimits } from './app/admit.ts'
import { createDirectory } from './app/directory.ts'
import { createSharedWakes } from './app/shared-wakes.ts'
import type { EdgeConfig } from './config.ts'
import type { Refusal } from './domain/refusal.ts'
import { isSandboxTraffic } from './domain/route.ts'
import type { FindSigner } from './domain/signed-file.ts'
import type { Wake } from './domain/wake.ts'
import { refuse } from './http/error-response.ts'
import { watchClientAbort } from './http/client-abort.ts'
import { proxyRequest } from './http/proxy.ts'
import type { ProxyContext } from './http/sandbox-connection.ts'
import { proxyUpgrade, responseOn, shouldUpgrade } from './http/upgrade.ts'
import { nodeSandboxSource } from './nodes/source.ts'

export interface Edge {
  /** True if the request is for a sandbox. Used on a port shared with the platform API. */
  claims(req: IncomingMessage): boolean
  handle(req: IncomingMessage, res: ServerResponse): void
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Resets open connections. Sandboxes keep running. */
  close(): Promise<void>
}

/** Options of the HTTP server that calls `handle`. Streams may last for days, and clients close idle connections first. */
export const edgeServerOptions = {
  requestTimeout: 0,
  headersTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  keepAliveTimeout: 620_000,
  shouldUpgradeCallback: shouldUpgrade,
} satisfies ServerOptions

export function createEdge(parts: {
  readonly node: Transport
  readonly log: Logger
  readonly config?: EdgeConfig
  /** Maximum of open requests and WebSockets, to all sandboxes together. */
  readonly mostRequests?: number
  /** Finds the sandbox that signed a URL without a sandbox ID. Provided by the api, which knows the tokens. */
  readonly findSigner?: FindSigner
  /** Resumes a paused sandbox. Provided by the api, which owns the records. */
  readonly wake?: Wake
  /** How long a request waits for its sandbox. Set by tests. */
  readonly wakeLimitMs?: number
}): Edge {
  const { log } = parts
  const directory = createDirectory(nodeSandboxSource(parts.node), log)
  const maxOpenPerSandbox = parts.config?.ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX
  const wakes = parts.wake && createSharedWakes(parts.wake, log)
  const { findSigner, wakeLimitMs } = parts
  const context = {
    directory,
    maxOpen: parts.mostRequests,
    maxOpenPerSandbox,
    findSigner,
    wakes,
    wakeLimitMs,
  }
  const closing = new AbortController()

  return {
    claims: isSandboxTraffic,

    handle(req, res) {
      start(req, {
        isRaw: false,
        refuse: (refusal) => refuse(req, res, refusal),
        proxy: (admitted) => proxyRequest(req, res, admitted),
      })
    },

    upgrade(req, socket, head) {
      socket.on('error', () => {}) // `close` follows
      start(req, {
        isRaw: true,
        refuse: (refusal) => refuse(req, responseOn(socket, req), refusal),
        proxy: (admitted) => proxyUpgrade(req, { socket, head }, admitted),
      })
    },

    async close() {
      closing.abort()
      await directory.close()
    },
  }

  function start(req: IncomingMessage, client: Client): void {
    run(1).catch(fail)

    function fail(error: unknown): void {
      log.error({ err: error, event: 'edge.pass' }, 'request failed with an unexpected error')
      try {
        client.refuse({ kind: 'internal' })
      } catch {
        req.socket.destroy() // a response has already started
      }
    }

    async function run(attempt: number): Promise<void> {
      const watchAbort = () => watchClientAbort(req.socket, client.isRaw, closing.signal)
      const admission = await admit(context, req, watchAbort)
      if (admission.kind === 'client_gone') {
        req.socket.destroy()
        return
      }
      if (admission.kind === 'refused') return client.refuse(admission.refusal)
      const limitReached = checkLimits(context, admission.sandbox)
      if (limitReached) return client.refuse(limitReached)
      const refuseOrRetry = (refusal: Refusal) => {
        // The sandbox ended or was paused before the connect, so the request can be retried.
        if (refusal.kind === 'sandbox_not_found' && attempt < maxAttempts) {
          run(attempt + 1).catch(fail)
        } else client.refuse(refusal)
      }
      return client.proxy({ ...admission, refuse: refuseOrRetry })
    }
  }
}

const maxAttempts = 3

interface Client {
  /** True if node:http no longer reads the socket. */
  readonly isRaw: boolean
  readonly refuse: (refusal: Refusal) => void
  readonly proxy: (context: ProxyContext) => Promise<void>
}
