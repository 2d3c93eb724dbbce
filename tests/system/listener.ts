/**
 * A program that listens on TCP and UDP on every IPv4 address of its network namespace, on a port it prints first.
 * To whoever comes it says `NAME saw ADDRESS`, and it prints each datagram.
 */
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

const [name = 'listener'] = process.argv.slice(2)
const greeting = (address: string | undefined) => `${name} saw ${address}\n`

const server = createServer((socket) => {
  socket.on('error', () => {})
  socket.end(greeting(socket.remoteAddress))
})
server.listen(0, '0.0.0.0', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not a port')
  const datagrams = createSocket('udp4', (message, { address: from, port }) => {
    process.stdout.write(`datagram ${message.toString('latin1')}\n`)
    datagrams.send(greeting(from), port, from)
  })
  datagrams.bind(address.port, '0.0.0.0', () => process.stdout.write(`port ${address.port}\n`))
})
