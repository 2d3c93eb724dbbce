import type { RequestRecord } from '@atoll/api'
import type { MeasureStep } from '@atoll/kit/instrument'
import type { Logger } from '@atoll/kit/log'
import type { Transport } from '@connectrpc/connect'
import type { ServerConfig } from '../config.ts'
import type { ListenAddress } from '../listen-address.ts'
import { startMetricsListener } from './listener.ts'
import { measureTransport } from './measure-transport.ts'
import { createMetrics } from './metrics.ts'
import type { Metrics } from './metrics.ts'
import { startTracing } from './tracing.ts'
import type { Tracing } from './tracing.ts'

/** Receivers for the reports of the server's parts; undefined while telemetry is off. */
export interface Telemetry {
  readonly onRequest: ((record: RequestRecord) => void) | undefined
  readonly onQuery: Metrics['onQuery'] | undefined
  readonly onEdgeRequest: Metrics['onEdgeRequest'] | undefined
  readonly measure: MeasureStep | undefined
  readonly metricsAddress?: ListenAddress
  /** Returns the transport with its calls measured. */
  measured(node: Transport): Transport
  /** Returns the handler of the API with its requests traced. */
  readonly traced: Tracing['traced']
  watchNode(node: Transport): void
  close(): Promise<void>
}

export async function startTelemetry(
  { server }: Pick<ServerConfig, 'server'>,
  log: Logger,
): Promise<Telemetry> {
  const { ATOLL_METRICS_LISTEN: address } = server
  const metrics = address && (await createMetrics())
  const listener = metrics && address && (await startMetricsListener(address, metrics))
  const tracing = startTracing(server, log)
  const measure = combine(metrics?.measure, tracing?.measure)
  return {
    onRequest:
      metrics || tracing
        ? (record) => {
            metrics?.onRequest(record)
            tracing?.onRequest(record)
          }
        : undefined,
    onQuery: metrics?.onQuery,
    onEdgeRequest: metrics?.onEdgeRequest,
    measure,
    ...(listener && { metricsAddress: listener.address }),
    measured: (node) => (measure ? measureTransport(node, measure) : node),
    traced: (handle) => tracing?.traced(handle) ?? handle,
    watchNode: (node) => metrics?.watchNode(node),
    async close() {
      await Promise.all([listener?.close(), tracing?.close()])
    },
  }
}

function combine(
  outer: MeasureStep | undefined,
  inner: MeasureStep | undefined,
): MeasureStep | undefined {
  if (!outer || !inner) return outer ?? inner
  return (part, name, work) => outer(part, name, () => inner(part, name, work))
}
