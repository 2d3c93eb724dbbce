import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { Fault } from '@atoll/kit/fault'
import { formatListenAddress } from '../listen-address.ts'
import type { ListenAddress } from '../listen-address.ts'
import type { Metrics } from './metrics.ts'

/** Serves `GET /metrics` on an address of its own, without a key: the setting accepts loopback addresses only. */
export interface MetricsListener {
  readonly address: ListenAddress
  close(): Promise<void>
}

export async function startMetricsListener(
  { host, port }: ListenAddress,
  metrics: Metrics,
): Promise<MetricsListener> {
  const server = createServer((req, res) => {
    answer(req, res, metrics).catch(() => res.destroy())
  })
  server.maxConnections = maxConnections
  server.listen({ host, port })
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    const place = formatListenAddress({ host, port })
    const message = `Cannot listen for metrics on ${place} (${error.code}): choose another address with ATOLL_METRICS_LISTEN`
    throw new Fault('conflict', 'cannot_listen', message, { cause: error })
  })
  const bound = server.address()
  return {
    address: { host, port: bound !== null && typeof bound === 'object' ? bound.port : port },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const maxConnections = 16

async function answer(req: IncomingMessage, res: ServerResponse, metrics: Metrics): Promise<void> {
  if (!isLocalName(req.headers.host)) return refuse(res, 403, 'Use the address of this listener')
  if (req.url?.replace(/\?.*/s, '') !== '/metrics')
    return refuse(res, 404, 'There is only /metrics')
  if (req.method !== 'GET') return refuse(res, 405, 'Use GET')
  const body = await metrics.render()
  res.writeHead(200, { 'Content-Type': metrics.contentType, 'Cache-Control': 'no-store' })
  res.end(body)
}

/** A web page can point a name of its own to 127.0.0.1, but cannot make a browser send another Host. */
function isLocalName(host = ''): boolean {
  const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || isIP(name) !== 0
}

function refuse(res: ServerResponse, status: number, message: string): void {
  res.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' })
  res.end(`${message}\n`)
}
