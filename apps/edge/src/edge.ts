/** Composition root of the edge: the sandbox host, that finds the sandbox and passes the bytes. */
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Transport } from '@connectrpc/connect'
import type { Logger } from '@atoll/kit/log'
import { admit, lackOfRoom } from './app/admit.ts'
import type { Admitted } from './app/admit.ts'
import { createDirectory } from './app/directory.ts'
import type { EdgeConfig } from './config.ts'
import type { Refusal } from './domain/refusal.ts'
import { isSandboxTraffic } from './domain/route.ts'
import type { FindSigner } from './domain/signed-file.ts'
import { refuse } from './http/errors.ts'
import { passRequest } from './http/proxy.ts'
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
  headersTimeout: 60_000,
  keepAliveTimeout: 620_000,
  shouldUpgradeCallback: shouldUpgrade,
} satisfies ServerOptions

export function createEdge(parts: {
  readonly node: Transport
  readonly log: Logger
  readonly config?: EdgeConfig
  /** Finds the sandbox of a signed URL that names none: whoever knows the tokens does. */
  readonly findSigner?: FindSigner
}): Edge {
  const { log } = parts
  const directory = createDirectory(nodeSandboxSource(parts.node), log)
  const maxOpenPerSandbox = parts.config?.ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX
  const rules = { directory, maxOpenPerSandbox, findSigner: parts.findSigner }

  return {
    claims: isSandboxTraffic,

    handle(req, res) {
      const answer = (refusal: Refusal) => refuse(req, res, refusal)
      start(req, answer, (admitted) => passRequest(req, res, { ...admitted, refuse: answer }))
    },

    upgrade(req, socket, head) {
      socket.on('error', () => {}) // its close says the same
      const answer = (refusal: Refusal) => refuse(req, responseOn(socket, req), refusal)
      start(req, answer, (admitted) =>
        passUpgrade(req, { socket, head }, { ...admitted, refuse: answer }),
      )
    },

    close: () => directory.close(),
  }

  function start(
    req: IncomingMessage,
    answer: (refusal: Refusal) => void,
    pass: (admitted: Admitted) => Promise<void>,
  ): void {
    run().catch((error: unknown) => {
      log.error({ err: error, event: 'edge.pass' }, 'unforeseen failure')
      try {
        answer({ kind: 'internal' })
      } catch {
        req.socket.destroy() // another answer had begun
      }
    })

    async function run(): Promise<void> {
      const admission = await admit(rules, req)
      if (admission.kind === 'refused') return answer(admission.refusal)
      const noRoom = lackOfRoom(rules, admission.sandbox)
      if (noRoom) return answer(noRoom)
      return pass(admission)
    }
  }
}
