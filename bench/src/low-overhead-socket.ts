/**
 * Connections that move bytes with as little work of our own as Node.js allows: into and out of memory that is used again.
 * A client that takes more would hide what it is to measure.
 */
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Socket } from 'node:net'

export interface Address {
  readonly host: string
  readonly port: number
}

/** `onChunk` is given what arrives; a chunk is good until it returns. */
export async function openLowOverheadSocket(
  { host, port }: Address,
  onChunk: (chunk: Buffer) => void,
): Promise<Socket> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes)
  const callback = (length: number) => {
    onChunk(buffer.subarray(0, length))
    return true
  }
  const socket = connect({ host, port, onread: { buffer, callback } })
  await once(socket, 'connect')
  socket.resume() // without it the end would not be told
  return socket
}

/** While one chunk is on its way, the next is read. */
export async function sendFile(socket: Socket, path: string): Promise<void> {
  await using file = await open(path)
  let sending = Promise.resolve()
  const buffers = [Buffer.allocUnsafeSlow(chunkBytes), Buffer.allocUnsafeSlow(chunkBytes)]
  for (;;) {
    for (const buffer of buffers) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length)
      await sending
      if (bytesRead === 0) return
      const chunk = buffer.subarray(0, bytesRead)
      sending = new Promise((resolve, reject) =>
        socket.write(chunk, (error) => (error ? reject(error) : resolve())),
      )
      sending.catch(() => {}) // seen when it is waited for
    }
  }
}

const chunkBytes = 256 * 1024
