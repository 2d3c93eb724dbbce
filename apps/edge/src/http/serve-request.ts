import type { IncomingMessage } from 'node:http'
import type { Logger } from '@atoll/kit/log'
import { admit, checkLimits } from '../app/admit.ts'
import type { AdmissionContext } from '../app/admit.ts'
import type { Refusal } from '../domain/refusal.ts'
import { watchClientAbort } from './client-abort.ts'
import type { ProxyContext } from './sandbox-connection.ts'

/** The client of one request: a plain response or a raw socket. */
interface Client {
  /** True if node:http no longer reads the socket. */
  readonly isRaw: boolean
  readonly refuse: (refusal: Refusal) => void
  readonly proxy: (context: ProxyContext) => Promise<void>
}

const maxAttempts = 3

/** Returns a function that admits a request and proxies it, or refuses it. */
export function createRequestServer(parts: {
  readonly context: AdmissionContext
  readonly log: Logger
  readonly closing: AbortSignal
}): (req: IncomingMessage, client: Client) => void {
  const { context, log, closing } = parts

  return (req, client) => {
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
      const watchAbort = () => watchClientAbort(req.socket, client.isRaw, closing)
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
