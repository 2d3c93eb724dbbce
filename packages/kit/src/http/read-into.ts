import type { OnReadOpts, Socket } from 'node:net'

/**
 * Makes a socket read into the caller's buffers. The `onread` option of node:net does this only for sockets that the
 * caller creates, not for accepted ones, so this sets the private fields behind that option. Returns false and changes
 * nothing if these fields differ from Node.js 24; then read the socket as usual.
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
