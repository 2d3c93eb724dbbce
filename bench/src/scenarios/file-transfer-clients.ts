/** Clients of the file transfer: one with as little overhead as the plain copy, and node:http for comparison. */
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { waitForResponse, startRequest, open } from '@atoll/system-tests/wire'
import { openLowOverheadSocket, sendFile } from '../low-overhead-socket.ts'

export interface Transfer {
  readonly url: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: number
}

export interface TransferClient {
  /** Sends the host file `source`. */
  upload(transfer: Transfer, source: string): Promise<void>
  download(transfer: Transfer): Promise<void>
}

export const lowOverheadClient: TransferClient = {
  async upload(transfer, source) {
    let reply = ''
    const socket = await openLowOverheadSocket(
      addressOf(transfer),
      (chunk) => (reply += chunk.toString()),
    )
    socket.write(requestHead('POST', transfer, bodyHeaders(transfer)))
    const closed = once(socket, 'close')
    closed.catch(() => {}) // rejects again where it is awaited
    await sendFile(socket, source)
    await closed
    if (!reply.startsWith('HTTP/1.1 200 ')) throw new Error(`Upload failed: ${reply}`)
  },
  async download(transfer) {
    let head = ''
    let received = 0
    const socket = await openLowOverheadSocket(addressOf(transfer), (chunk) => {
      received += chunk.length
      if (!head.includes(headerEnd)) head += chunk.toString('latin1')
    })
    socket.write(requestHead('GET', transfer))
    await once(socket, 'close')
    const body = received - head.indexOf(headerEnd) - headerEnd.length
    if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`Download failed: ${head}`)
    checkLength(body, transfer)
  },
}

export const nodeHttpClient: TransferClient = {
  async upload(transfer, source) {
    const { url, path } = transfer
    const outgoing = startRequest(url, { method: 'POST', path, headers: bodyHeaders(transfer) })
    const answered = waitForResponse(outgoing)
    await pipeline(createReadStream(source, { highWaterMark: 256 * 1024 }), outgoing)
    const answer = await answered
    answer.resume()
    if (answer.statusCode !== 200) throw new Error(`Upload failed with status ${answer.statusCode}`)
  },
  async download(transfer) {
    const answer = await open(transfer.url, transfer)
    let received = 0
    answer.on('data', (chunk: Buffer) => (received += chunk.length))
    await once(answer, 'close')
    checkLength(received, transfer)
  },
}

const headerEnd = '\r\n\r\n'

function addressOf({ url }: Transfer) {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

function bodyHeaders({ headers, bytes }: Transfer): Record<string, string> {
  const type = 'application/octet-stream'
  return { ...headers, 'Content-Type': type, 'Content-Length': String(bytes) }
}

function requestHead(method: string, { path, headers }: Transfer, more = headers): string {
  const lines = Object.entries({ Host: 'localhost', Connection: 'close', ...more })
  const headerLines = lines.map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${headerLines.join('')}\r\n`
}

function checkLength(received: number, { bytes }: Transfer): void {
  if (received !== bytes) throw new Error(`Expected ${bytes} bytes, but ${received} arrived`)
}
