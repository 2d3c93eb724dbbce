/**
 * Program that listens on TCP and UDP on all IPv4 addresses of its network namespace. It prints its ports first. It
 * answers `NAME saw ADDRESS` and prints each datagram. A second port echoes.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Server } from 'node:net'
import { networkInterfaces } from 'node:os'

const [name = 'listener'] = process.argv.slice(2)
const greeting = (address: string | undefined) => `${name} saw ${address}\n`

const port = await listen(
  createServer((socket) => {
    socket.on('error', () => {})
    socket.end(greeting(socket.remoteAddress))
  }),
)
const echoPort = await listen(
  createServer((socket) => {
    socket.on('error', () => {})
    socket.pipe(socket)
  }),
)
const addresses = Object.values(networkInterfaces())
  .flatMap((link) => link ?? [])
  .filter(({ family, address }) => family === 'IPv4' && !address.startsWith('127.'))
await Promise.all(addresses.map(({ address }) => answerDatagrams(address)))
process.stdout.write(`port ${port} echo ${echoPort}\n`)

/** Opens one socket per address, so that a reply comes from the address of its request. */
async function answerDatagrams(address: string): Promise<void> {
  const socket = createSocket('udp4', (message, from) => {
    process.stdout.write(`datagram ${message.toString('latin1')}\n`)
    socket.send(greeting(from.address), from.port, from.address)
  })
  socket.bind(port, address)
  await once(socket, 'listening')
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not a port')
  return address.port
}
