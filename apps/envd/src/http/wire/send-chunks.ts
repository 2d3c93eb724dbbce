import type { Writable } from 'node:stream'

/** Resolves when the bytes are written, so that their buffer can be reused, or when the stream is closed. */
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

/** Sends chunks one at a time, each valid only until the next is requested, and ends the stream. */
export async function sendChunks(to: Writable, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of chunks) {
    await sendChunk(to, chunk)
    if (to.destroyed) throw new Error('The client disconnected during the response')
  }
  to.end()
}
