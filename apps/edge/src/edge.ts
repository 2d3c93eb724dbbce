/** Composition root of the edge: the sandbox host, that finds the sandbox and passes the bytes. */
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Transport } from '@connectrpc/connect'
import type { Logger } from '@atoll/kit/log'
import { admit, lackOfRoom } from './app/admit.ts'
import { createDirectory } from './app/directory.ts'
import { createWaking } from './app/waking.ts'
import type { EdgeConfig } from './config.ts'
import type { Refusal } from './domain/refusal.ts'
import { isSandboxTraffic } from './domain/route.ts'
import type { FindSigner } from './domain/signed-file.ts'
import type { Wake } from './domain/wake.ts'
import { refuse } from './http/errors.ts'
import { leavingOf } from './http/leaving.ts'
import { passRequest } from './http/proxy.ts'
import type { Pass } from './http/reach.ts'
import { passUpgrade, responseOn, shouldUpgrade } from './http/upgrade.ts'
import { nodeSandboxSource } from './nodes/source.ts'

export interface Edge {
  /** On a port shared with the platform API: whether this request is for a sandbox. */
  claims(req: IncomingMessage): boolean
  handle(req: IncomingMessage, res: ServerResponse): void
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Resets what is open. Sandboxes go on. */
  close(): Promise<void>
}

/** For the server that calls `handle`: streams may last for days, idle connections outlive those of clients. */
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
  /** Requests and WebSockets that may be open at a time, to all sandboxes together. */
  readonly mostRequests?: number
  /** Finds the sandbox of a signed URL that names none: whoever knows the tokens does. */
  readonly findSigner?: FindSigner
  /** Brings back a sandbox that does not run: whoever owns the records does. */
  readonly wake?: Wake
  /** For tests: how long a request waits for its sandbox. */
  readonly wakeLimitMs?: number
}): Edge {
  const { log } = parts
  const directory = createDirectory(nodeSandboxSource(parts.node), log)
  const maxOpenPerSandbox = parts.config?.ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX
  const waking = parts.wake && createWaking(parts.wake, log)
  const { findSigner, wakeLimitMs } = parts
  const rules = {
    directory,
    maxOpen: parts.mostRequests,
    maxOpenPerSandbox,
    findSigner,
    waking,
    wakeLimitMs,
  }
  const closing = new AbortController()

  return {
    claims: isSandboxTraffic,

    handle(req, res) {
      start(req, {
        isRaw: false,
        refuse: (refusal) => refuse(req, res, refusal),
        pass: (way) => passRequest(req, res, way),
      })
    },

    upgrade(req, socket, head) {
      socket.on('error', () => {}) // its close says the same
      start(req, {
        isRaw: true,
        refuse: (refusal) => refuse(req, responseOn(socket, req), refusal),
        pass: (way) => passUpgrade(req, { socket, head }, way),
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
      log.error({ err: error, event: 'edge.pass' }, 'unforeseen failure')
      try {
        client.refuse({ kind: 'internal' })
      } catch {
        req.socket.destroy() // another answer had begun
      }
    }

    async function run(attempt: number): Promise<void> {
      const leaving = () => leavingOf(req.socket, client.isRaw, closing.signal)
      const admission = await admit(rules, req, leaving)
      if (admission.kind === 'left') {
        req.socket.destroy()
        return
      }
      if (admission.kind === 'refused') return client.refuse(admission.refusal)
      const noRoom = lackOfRoom(rules, admission.sandbox)
      if (noRoom) return client.refuse(noRoom)
      const refuseOrRetry = (refusal: Refusal) => {
        // It ended, or was paused, before it was reached: nothing of the request is gone yet.
        if (refusal.kind === 'sandbox_not_found' && attempt < mostAttempts) {
          run(attempt + 1).catch(fail)
        } else client.refuse(refusal)
      }
      return client.pass({ ...admission, refuse: refuseOrRetry })
    }
  }
}

const mostAttempts = 3

interface Client {
  /** Whether the socket is no longer read by node:http. */
  readonly isRaw: boolean
  readonly refuse: (refusal: Refusal) => void
  readonly pass: (way: Pass) => Promise<void>
}
