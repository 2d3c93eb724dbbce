/**
 * A sandbox from the pool in an installation with metrics and traces, against one without. A second installation without
 * them shows how much two equal installations differ.
 */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { freePort } from '@atoll/kit/testing/free-port'
import type { HttpCloud } from '@atoll/system-tests/http-cloud'
import { createInTurns } from '../create-in-turns.ts'
import type { Scenario } from '../scenario.ts'

export const telemetryCost: Scenario = {
  name: 'telemetry-cost',
  rounds: 100,
  async measure(context) {
    const { testBed, rounds } = context
    await using collector = await startCollector()
    const metrics = `127.0.0.1:${await freePort()}`
    const telemetry = {
      ATOLL_METRICS_LISTEN: metrics,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    }
    const clouds: [string, HttpCloud][] = [
      [without, await testBed.cloud('gvisor', 'pooled')],
      [control, await testBed.cloud('gvisor', 'pooled', { ATOLL_LOG_LEVEL: 'info' })],
      [withAll, await testBed.cloud('gvisor', 'pooled', telemetry)],
    ]
    using scrapes = scrape(`http://${metrics}/metrics`)
    const { row } = await createInTurns(context, clouds)
    if (collector.batches() === 0 || scrapes.count() === 0) {
      throw new Error('No trace reached the collector, or no metrics were read')
    }
    return [
      {
        scenario: 'telemetry-cost',
        description: `POST /v2/sandboxes with a full pool, ${rounds} rounds, interleaved; metrics are read every ${scrapeIntervalMs / 1000} s`,
        rows: ['until 201', 'until first output'].flatMap((until) => [
          row(`${without}: ${until}`),
          row(`${control}: ${until}`, `${without}: ${until}`),
          row(`${withAll}: ${until}`, `${without}: ${until}`),
        ]),
      },
    ]
  },
}

const without = 'without telemetry'
const control = 'without telemetry, second installation'
const withAll = 'metrics and traces'

/** Three times as often as Prometheus reads by default. */
const scrapeIntervalMs = 5000

interface Collector extends AsyncDisposable {
  readonly url: string
  batches(): number
}

/** Accepts traces as an OpenTelemetry collector does, and drops them. */
async function startCollector(): Promise<Collector> {
  let batches = 0
  const server = createServer((req, res) => {
    req.resume().on('end', () => {
      batches += 1
      res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
    })
  })
  const port = await freePort()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${port}`,
    batches: () => batches,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function scrape(url: string): Disposable & { count(): number } {
  let count = 0
  const read = async () => {
    const reply = await fetch(url)
    await reply.text()
    count += reply.ok ? 1 : 0
  }
  const timer = setInterval(() => void read().catch(() => {}), scrapeIntervalMs)
  return { count: () => count, [Symbol.dispose]: () => clearInterval(timer) }
}
