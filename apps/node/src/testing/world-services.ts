/**
 * Servers of the outside world for egress tests, run in its network namespace. HTTP and TLS servers return the address
 * and name that they were reached by and the client's address; HTTP also returns the authorization header. Name servers
 * answer from a table.
 *
 *   node world-services.ts '{"11.0.0.2": {"example.com": "11.1.1.1"}}'
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:tls'

const tables: Record<string, Record<string, string>> = JSON.parse(process.argv[2] ?? '{}')

const http = createServer(({ socket, headers }, response) => {
  const told = [socket.localAddress, headers.host, socket.remoteAddress]
  if (headers.authorization !== undefined) told.push(headers.authorization)
  response.end(told.join(' '))
})
http.listen(80, '0.0.0.0')

/** Uses a pre-shared key, so that no certificates are needed. */
const tls = createTlsServer(
  { ciphers: 'PSK', maxVersion: 'TLSv1.2', pskCallback: () => Buffer.from('secret') },
  (socket) => {
    socket.on('error', () => {})
    socket.end(
      [socket.localAddress, Reflect.get(socket, 'servername'), socket.remoteAddress].join(' '),
    )
  },
)
tls.on('tlsClientError', () => {})
tls.listen(443, '0.0.0.0')

const names = Object.entries(tables).map(([address, table]) => {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address: from }) =>
    socket.send(answer(query, table), port, from),
  )
  return socket.bind(53, address)
})

await Promise.all([http, tls, ...names].map((server) => once(server, 'listening')))
process.stdout.write('ready\n')

/** Answers a query with one address for a name in the table, or NXDOMAIN. */
function answer(query: Buffer, table: Readonly<Record<string, string>>): Buffer {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const question = query.subarray(12, at + 5)
  const found = table[labels.join('.').toLowerCase()]
  const isForAddress = query.readUInt16BE(at + 1) === 1
  const address = found !== undefined && isForAddress ? found.split('.').map(Number) : []
  const head = Buffer.from([
    ...query.subarray(0, 2),
    0x81,
    found ? 0x80 : 0x83,
    0,
    1,
    0,
    address.length / 4,
    0,
    0,
    0,
    0,
  ])
  const record = address.length > 0 ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address] : []
  return Buffer.concat([head, question, Buffer.from(record)])
}
