import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/** DNS server that answers every query with the same addresses. */
export async function startTestDnsServer(
  t: { after(fn: () => void): void },
  addresses: readonly string[],
  delayMs = 0,
) {
  /** Source ports of the queries. */
  const ports: number[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, { port }) => {
    ports.push(port)
    const head = Buffer.from([0x81, 0x80, 0, 1, 0, addresses.length, 0, 0, 0, 0])
    const question = query.subarray(12, query.indexOf(0, 12) + 5)
    const records = addresses.flatMap((address) => [
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]),
      Buffer.from(address.split('.').map(Number)),
    ])
    const answer = Buffer.concat([query.subarray(0, 2), head, question, ...records])
    void sleep(delayMs).then(() => socket.send(answer, port))
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.after(() => void socket.close())
  return { address: `127.0.0.1:${socket.address().port}`, ports }
}
