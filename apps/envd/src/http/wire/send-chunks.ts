import type { Writable } from 'node:stream'

/** Resolves when the bytes were taken, so that their memory can be used again, or when nobody is left to take them. */
export function sendChunk(to: Writable, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      to.off('close', done)
      resolve()
    }
    to.once('close', done)
    to.write(bytes, done)
  })
}

/** Sends one piece after the other, each good only until the next is asked for, and ends the stream. */
export async function sendChunks(to: Writable, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of chunks) {
    await sendChunk(to, chunk)
    if (to.destroyed) throw new Error('The client left before it had everything')
  }
  to.end()
}
