/** Traces of API requests, from the API over the node to the runtime. Off without `OTEL_EXPORTER_OTLP_ENDPOINT`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestRecord } from '@atoll/api'
import type { MeasureStep } from '@atoll/kit/instrument'
import type { Logger } from '@atoll/kit/log'
import type { ServerConfig } from '../config.ts'
import { startExporter } from './otlp-exporter.ts'
import { createSpans, parseTraceparent } from './spans.ts'
import type { IsSampled } from './spans.ts'

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void

export interface Tracing {
  /** Returns the handler with a span around each request. */
  traced(handle: RequestHandler): RequestHandler
  /** Adds operation, team, sandbox and reason to the span of the request that is being answered. */
  onRequest(record: RequestRecord): void
  readonly measure: MeasureStep
  close(): Promise<void>
}

type Settings = ServerConfig['server']

export function startTracing(settings: Settings, log: Logger): Tracing | undefined {
  const url = endpointOf(settings)
  if (url === undefined || settings.OTEL_SDK_DISABLED === 'true') return undefined
  const exporter = startExporter(
    {
      url,
      headers: parsePairs(settings.OTEL_EXPORTER_OTLP_HEADERS),
      resource: {
        ...parsePairs(settings.OTEL_RESOURCE_ATTRIBUTES),
        'service.name': settings.OTEL_SERVICE_NAME ?? 'atoll',
      },
    },
    log,
  )
  const spans = createSpans(createSampler(settings), exporter.add)
  return {
    traced: (handle) => (request, response) => {
      const parent = parseTraceparent(request.headers['traceparent'])
      const span = spans.startRequest('http.other', parent)
      if (!span) return handle(request, response)
      response.once('close', () => {
        span.attributes['http.response.status_code'] = response.statusCode
        span.hasFailed = response.statusCode >= 500
        spans.end(span)
      })
      return spans.within(span, () => handle(request, response))
    },
    onRequest({ operation, teamId, sandboxId, reason }) {
      const span = spans.current()
      if (!span) return
      span.name = operation ?? span.name
      Object.assign(span.attributes, {
        ...(teamId !== undefined && { 'atoll.team': teamId }),
        ...(sandboxId !== undefined && { 'atoll.sandbox': sandboxId }),
        ...(reason !== undefined && { 'atoll.reason': reason }),
      })
    },
    measure: (part, name, work) => spans.step(`${part}.${name}`, work),
    close: () => exporter.close(),
  }
}

function endpointOf(settings: Settings): string | undefined {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT: base } = settings
  return OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base && `${base.replace(/\/+$/, '')}/v1/traces`)
}

/** Parses `a=1,b=2`, with values as in a URL. */
function parsePairs(text = ''): Record<string, string> {
  const pairs = text.split(',').flatMap((pair) => {
    const [, name, value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
    return name === undefined ? [] : [[name, decode(value)] as const]
  })
  return Object.fromEntries(pairs)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function createSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share }: Settings) {
  const ratio = name.endsWith('always_off') ? 0 : name.endsWith('traceidratio') ? share : 1
  // The low half of the ID, as other SDKs do, so that all of them choose the same traces.
  const isChosen = (traceId: string) => Number.parseInt(traceId.slice(-13), 16) < ratio * 2 ** 52
  const sampler: IsSampled = (traceId, parent) =>
    name.startsWith('parentbased_') && parent ? parent.isSampled : isChosen(traceId)
  return sampler
}
