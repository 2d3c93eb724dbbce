/**
 * Reads a descriptor that is not a pipe, socket or terminal in the event loop. Node.js has no public API for this:
 * fs.read would block one of four threads until data arrives, and SIGIO can displace SIGCHLD, so that process exits
 * are missed. But libuv pipes read any descriptor that epoll supports, and their binding is accessible.
 */
import { Socket } from 'node:net'

export interface DescriptorReader {
  /** Also closes the descriptor. */
  close(): void
}

export function readDescriptor(fd: number, onBytes: (bytes: Buffer) => void): DescriptorReader {
  // The option `handle` is internal, so the types do not include it.
  const options = { handle: openPipe(fd), readable: true, writable: false }
  const socket: Socket = Reflect.construct(Socket, [options])
  socket.on('data', onBytes)
  socket.on('error', () => {}) // read errors surface in the caller's own read
  socket.unref()
  return { close: () => void socket.destroy() }
}

function openPipe(fd: number): unknown {
  const binding: unknown = Reflect.get(process, 'binding')
  if (typeof binding !== 'function')
    throw new Error('process.binding does not exist in this version of Node.js')
  const { Pipe, constants } = binding.call(process, 'pipe_wrap')
  const pipe = new Pipe(constants.SOCKET)
  const failure: number = pipe.open(fd)
  if (failure)
    throw new Error(`The event loop cannot read descriptor ${fd}: libuv error ${failure}`)
  return pipe
}
