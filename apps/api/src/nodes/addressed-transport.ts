import { epochHeader, nodeHeader } from '@atoll/contracts/node-faults'
import type { Transport } from '@connectrpc/connect'

/** Identity of a node agent: only this one may answer a call. */
export interface Addressee {
  readonly id: string
  readonly epoch: number
}

/**
 * Sends calls to one node agent only: any other one that answers at the same address refuses them. Calls before the
 * addressee is known fail.
 */
export function addressTo(transport: Transport, addressee: () => Addressee): Transport {
  const toHeaders = (given: ConstructorParameters<typeof Headers>[0]): Headers => {
    const { id, epoch } = addressee()
    const headers = new Headers(given)
    headers.set(nodeHeader, id)
    headers.set(epochHeader, String(epoch))
    return headers
  }
  return {
    unary: async (method, signal, timeoutMs, header, input, context) =>
      transport.unary(method, signal, timeoutMs, toHeaders(header), input, context),
    stream: async (method, signal, timeoutMs, header, input, context) =>
      transport.stream(method, signal, timeoutMs, toHeaders(header), input, context),
  }
}
