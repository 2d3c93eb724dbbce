/**
 * External servers that return the request they got, run in a network namespace: HTTP on 8080, HTTPS on 8443, and HTTPS
 * with an untrusted certificate on 8444. `/digest` returns only a hash of two headers: a sandbox that gets it does not
 * hold their values.
 *
 *   node header-server.ts '{"trusted": {"certificate": PEM, "key": PEM}, "untrusted": {…}}'
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'

const { trusted, untrusted } = JSON.parse(process.argv[2] ?? '{}')

async function echoRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let bytes = 0
  for await (const piece of request) bytes += Buffer.byteLength(piece)
  const { method, url, headers, socket } = request
  if (url === '/digest') {
    const values = `${String(headers['x-team'])}\n${String(headers['x-own'])}`
    response.end(createHash('sha256').update(values).digest('hex'))
    return
  }
  const body = JSON.stringify({ at: socket.localAddress, method, url, headers, bytes })
  response.setHeader('content-type', 'application/json').end(body)
}

const listener = (request: IncomingMessage, response: ServerResponse) =>
  void echoRequest(request, response).catch(() => response.destroy())
const createSecureServer = ({ certificate, key }: { certificate: string; key: string }) =>
  createTlsServer({ cert: certificate, key }, listener)
const servers = [
  createServer(listener).listen(8080, '0.0.0.0'),
  createSecureServer(trusted).listen(8443, '0.0.0.0'),
  createSecureServer(untrusted).listen(8444, '0.0.0.0'),
]
for (const server of servers) server.on('tlsClientError', () => {})
await Promise.all(servers.map((server) => once(server, 'listening')))
process.stdout.write('ready\n')
