import type { OnReadOpts, Socket } from 'node:net'

/**
 * Has a socket read into memory of the caller's from now on, as node:net's option `onread` does for one that is made by
 * the caller; of a socket that a server accepted it cannot be asked. This reaches for what that option sets inside of
 * node:net. Answers false, and has changed nothing, where that is not as it was in Node.js 24: then the socket is to be
 * read as usual.
 */
export function readInto(socket: Socket, { buffer, callback }: OnReadOpts): boolean {
  const handle: unknown = Reflect.get(socket, '_handle')
  const [current, generator, reader] = fields.map((name) => fieldOf(socket, name))
  if (!hasUserBuffer(handle) || !current || !generator || !reader) return false
  const first = typeof buffer === 'function' ? buffer() : buffer
  Reflect.set(socket, current, first)
  Reflect.set(socket, generator, typeof buffer === 'function' ? buffer : null)
  Reflect.set(socket, reader, callback)
  handle.useUserBuffer(first)
  return true
}

const fields = ['kBuffer', 'kBufferGen', 'kBufferCb'] as const

function fieldOf(socket: Socket, name: string): symbol | undefined {
  return Object.getOwnPropertySymbols(socket).find(({ description }) => description === name)
}

function hasUserBuffer(handle: unknown): handle is { useUserBuffer(memory: Uint8Array): void } {
  return (
    typeof handle === 'object' &&
    handle !== null &&
    'useUserBuffer' in handle &&
    typeof handle.useUserBuffer === 'function'
  )
}
