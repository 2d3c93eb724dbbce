import type { MeasureStep } from '@atoll/kit/instrument'
import type { Transport } from '@connectrpc/connect'

/** Returns the transport with its calls measured, except streams, which last as long as the server. */
export function measureTransport(transport: Transport, measure: MeasureStep): Transport {
  return {
    ...transport,
    unary: (method, ...rest) =>
      measure('node', method.name, () => transport.unary(method, ...rest)),
  }
}
