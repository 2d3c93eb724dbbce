/**
 * Metrics of the server in the Prometheus format. Labels have few values by design: operations, statuses and reasons of
 * this release, never IDs of teams, sandboxes or templates.
 */
import type { QueryRecord, RequestRecord } from '@atoll/api'
import type { EdgeRequest } from '@atoll/edge'
import type { MeasureStep } from '@atoll/kit/instrument'
import type { Transport } from '@connectrpc/connect'
import type { Registry } from 'prom-client'
import manifest from '../../package.json' with { type: 'json' }
import { createDeferred } from './deferred.ts'
import type { Library } from './library.ts'
import { addNodeMetrics } from './node-metrics.ts'

export interface Metrics {
  onRequest(record: RequestRecord): void
  onQuery(record: QueryRecord): void
  onEdgeRequest(request: EdgeRequest): void
  readonly measure: MeasureStep
  /** Adds metrics that each scrape reads from the node. */
  watchNode(node: Transport): void
  readonly contentType: string
  render(): Promise<string>
}

const requestBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const queryBuckets = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]

/** Loads the library on demand: without a listener for metrics, nothing is measured. */
export async function createMetrics(): Promise<Metrics> {
  const { default: library } = await import('prom-client')
  const registry = new library.Registry()
  library.collectDefaultMetrics({ register: registry })
  const defined = defineMetrics(library, [registry])
  const { requests, faults, queries, steps, edgeRequests, edgeRefusals, edgeBytes } = defined
  const later = createDeferred()
  let readNode = async () => {}
  return {
    onRequest: ({ operation = 'other', status, durationMs, reason }) =>
      later.add(() => {
        requests.observe({ operation, status: classOf(status) }, durationMs / 1000)
        if (reason !== undefined) faults.inc({ reason })
      }),
    onQuery: ({ kind, hasFailed, durationMs }) =>
      later.add(() =>
        queries.observe({ kind, outcome: hasFailed ? 'error' : 'ok' }, durationMs / 1000),
      ),
    onEdgeRequest: ({ kind, status, refusal, bytesReceived, bytesSent }) =>
      later.add(() => {
        edgeRequests.inc({ kind, status: classOf(status) })
        if (refusal !== undefined) edgeRefusals.inc({ reason: refusal })
        edgeBytes.inc({ direction: 'received' }, bytesReceived)
        edgeBytes.inc({ direction: 'sent' }, bytesSent)
      }),
    async measure(part, name, work) {
      const started = performance.now()
      const observe = (outcome: string) => {
        const seconds = (performance.now() - started) / 1000
        later.add(() => steps[part].observe({ name, outcome }, seconds))
      }
      try {
        const result = await work()
        observe('ok')
        return result
      } catch (error) {
        observe('error')
        throw error
      }
    },
    watchNode(node) {
      readNode = addNodeMetrics(node, library, [registry])
    },
    contentType: registry.contentType,
    async render() {
      await readNode()
      later.flush()
      return registry.metrics()
    },
  }
}

function defineMetrics({ Counter, Gauge, Histogram }: Library, registers: Registry[]) {
  const build = new Gauge({
    ...{ name: 'atoll_build_info', help: 'Version of the server; always 1', registers },
    labelNames: ['version'],
  })
  build.set({ version: manifest.version }, 1)
  const requests = new Histogram({
    ...{ name: 'atoll_api_request_duration_seconds', registers, buckets: requestBuckets },
    help: 'Requests of the platform API by operation and class of the status',
    labelNames: ['operation', 'status'],
  })
  const faults = new Counter({
    ...{ name: 'atoll_api_faults_total', registers },
    help: 'Refused and failed requests of the platform API by reason (docs/errors.md)',
    labelNames: ['reason'],
  })
  const queries = new Histogram({
    ...{ name: 'atoll_store_query_duration_seconds', registers, buckets: queryBuckets },
    help: 'Statements of the store by kind and outcome',
    labelNames: ['kind', 'outcome'],
  })
  const steps = {
    node: new Histogram({
      ...{ name: 'atoll_node_call_duration_seconds', registers, buckets: requestBuckets },
      help: 'Calls of the node protocol by method and outcome',
      labelNames: ['name', 'outcome'],
    }),
    runtime: new Histogram({
      ...{ name: 'atoll_runtime_call_duration_seconds', registers, buckets: requestBuckets },
      help: 'Calls of the container runtime by name and outcome',
      labelNames: ['name', 'outcome'],
    }),
  }
  const edgeRequests = new Counter({
    ...{ name: 'atoll_edge_requests_total', registers },
    help: 'Finished requests and WebSockets to sandboxes by class of the status',
    labelNames: ['kind', 'status'],
  })
  const edgeRefusals = new Counter({
    ...{ name: 'atoll_edge_refusals_total', registers },
    help: 'Requests that the edge answered itself, by reason',
    labelNames: ['reason'],
  })
  const edgeBytes = new Counter({
    ...{ name: 'atoll_edge_bytes_total', registers },
    help: 'Bytes of finished requests and WebSockets to sandboxes',
    labelNames: ['direction'],
  })
  return { requests, faults, queries, steps, edgeRequests, edgeRefusals, edgeBytes }
}

/** Sandboxes choose any status, so only its class is a label. */
function classOf(status: number): string {
  const first = Math.floor(status / 100)
  return first >= 1 && first <= 5 ? `${first}xx` : 'other'
}
