/** Sends spans to an OpenTelemetry collector, as OTLP over HTTP in JSON. */
import type { Logger } from '@atoll/kit/log'
import type { Span } from './spans.ts'

export interface ExporterSettings {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly resource: Readonly<Record<string, string>>
}

export interface Exporter {
  add(span: Span): void
  /** Sends what is left. */
  close(): Promise<void>
}

const maxBuffered = 4096
const maxBatch = 512
const intervalMs = 5_000
const timeoutMs = 10_000

/** Spans that cannot be sent are dropped: a collector that is away must not cost memory or time. */
export function startExporter(settings: ExporterSettings, log: Logger): Exporter {
  let waiting: Span[] = []
  let sending: Promise<void> | undefined
  let isFailing = false
  const timer = setInterval(flush, intervalMs)
  timer.unref()

  function flush(): void {
    sending ??= send().finally(() => (sending = undefined))
  }

  async function send(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, maxBatch)
      waiting = waiting.slice(maxBatch)
      const failure = await post(settings, batch)
      if (failure !== undefined && !isFailing) {
        log.warn(
          { event: 'traces.export', reason: failure },
          'traces cannot be sent and are dropped',
        )
      }
      isFailing = failure !== undefined
    }
  }

  return {
    add(span) {
      if (waiting.length >= maxBuffered) return
      waiting.push(span)
      if (waiting.length >= maxBatch) flush()
    },
    async close() {
      clearInterval(timer)
      await sending
      await send()
    },
  }
}

/** Returns why the batch could not be sent. */
async function post(
  { url, headers, resource }: ExporterSettings,
  batch: readonly Span[],
): Promise<string | undefined> {
  const scopeSpans = [{ scope: { name: 'atoll' }, spans: batch.map(toOtlp) }]
  const body = { resourceSpans: [{ resource: { attributes: toAttributes(resource) }, scopeSpans }] }
  try {
    const reply = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    })
    await reply.body?.cancel()
    return reply.ok ? undefined : `status ${reply.status}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const [internalKind, serverKind] = [1, 2]
const errorStatus = 2

function toOtlp({ parentId, isServer, startMs, endMs, hasFailed, attributes, ...ids }: Span) {
  return {
    ...ids,
    ...(parentId !== undefined && { parentSpanId: parentId }),
    kind: isServer ? serverKind : internalKind,
    startTimeUnixNano: toNanoseconds(startMs),
    endTimeUnixNano: toNanoseconds(endMs),
    attributes: toAttributes(attributes),
    ...(hasFailed && { status: { code: errorStatus } }),
  }
}

function toNanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n)
}

function toAttributes(values: Readonly<Record<string, string | number>>) {
  return Object.entries(values).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }))
}
