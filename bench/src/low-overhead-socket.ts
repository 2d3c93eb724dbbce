/**
 * Sockets with reused buffers: the lowest overhead that Node.js allows. A slower client would hide the time of the
 * server.
 */
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Socket } from 'node:net'

export interface Address {
  readonly host: string
  readonly port: number
}

/** The buffer of a chunk is reused after `onChunk` returns. */
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
  socket.resume() // otherwise the socket never emits `end`
  return socket
}

/** Reads the next chunk while the previous one is sent. */
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
      sending.catch(() => {}) // rejects again where it is awaited
    }
  }
}

const chunkBytes = 256 * 1024
