import { Agent as PlainAgent } from 'node:http'
import type { RequestListener } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { text } from 'node:stream/consumers'

/** Echoes the request as JSON. */
export const echo: RequestListener = (req, res) => {
  const { method, url, rawHeaders } = req
  void text(req).then((body) => res.end(JSON.stringify({ method, url, rawHeaders, body })))
}

export const greet: RequestListener = (_req, res) => void res.end('hello')

interface Echo {
  readonly method: string
  readonly url: string
  readonly rawHeaders: string[]
  readonly body: string
}

export function readEcho(body: string): Echo {
  return JSON.parse(body)
}

export function headersIn({ rawHeaders }: Echo, wanted: string): string[] {
  return rawHeaders.filter((_, at) => rawHeaders[at - 1]?.toLowerCase() === wanted && at % 2 === 1)
}

export function createKeepAliveAgent(protocol: 'tls' | 'http'): PlainAgent | SecureAgent {
  const options = { keepAlive: true, maxSockets: 1 }
  return protocol === 'tls' ? new SecureAgent(options) : new PlainAgent(options)
}
