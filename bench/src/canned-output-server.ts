import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'
import { endFlag, frame } from '@atoll/system-tests/wire'

const bytes = Number(workerData)
const chunkBytes = 32 * 1024
const chunksAtOnce = 8

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy())
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') parentPort?.postMessage(address.port, [])
})

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const type = request.headers['content-type'] ?? ''
  const { start, output, end } = type.includes('json') ? json : binary
  request.resume()
  await once(request, 'end')
  response.writeHead(200, { 'content-type': type })
  response.write(start)
  const many = Buffer.concat(Array.from({ length: chunksAtOnce }, () => output(chunkBytes)))
  let left = bytes
  for (; left >= chunkBytes * chunksAtOnce; left -= chunkBytes * chunksAtOnce) {
    if (!response.write(many)) await once(response, 'drain')
  }
  for (; left > 0; left -= chunkBytes) response.write(output(Math.min(left, chunkBytes)))
  response.write(end)
  response.end(frame('{}', endFlag))
}

const json = {
  start: frame('{"event":{"start":{"pid":7}}}'),
  output: (size: number) =>
    frame(`{"event":{"data":{"stdout":"${Buffer.alloc(size).toString('base64')}"}}}`),
  end: frame('{"event":{"end":{"exited":true,"status":"exit status 0"}}}'),
}

/** Protobuf of StartResponse: field 1 is the event, which has start (1), data (2) or end (3). */
const binary = {
  start: frame(field(1, field(1, Buffer.from([1 << 3, 7])))),
  output: (size: number) => frame(field(1, field(2, field(1, Buffer.alloc(size))))),
  end: frame(field(1, field(3, Buffer.from([2 << 3, 1])))),
}

function field(number: number, content: Buffer): Buffer {
  const head = [(number << 3) | 2]
  let rest = content.length
  for (; rest > 0x7f; rest >>>= 7) head.push((rest & 0x7f) | 0x80)
  return Buffer.concat([Buffer.from([...head, rest]), content])
}
