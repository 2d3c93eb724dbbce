/**
 * Reads a descriptor in Node.js's event loop that is neither pipe nor socket nor terminal. There is no published way:
 * fs.read would hold one of four threads for as long as nothing happens, and SIGIO can crowd out SIGCHLD, so that ends of
 * processes get lost. libuv's pipes however read whatever epoll can wait for, and their binding can be had.
 */
import { Socket } from 'node:net'

export interface DescriptorReader {
  /** Closes the descriptor too. */
  close(): void
}

export function readDescriptor(fd: number, onBytes: (bytes: Buffer) => void): DescriptorReader {
  // The option `handle` is for insiders, so its type does not know what a pipe's is.
  const options = { handle: openPipe(fd), readable: true, writable: false }
  const socket: Socket = Reflect.construct(Socket, [options])
  socket.on('data', onBytes)
  socket.on('error', () => {}) // what cannot be read this way is found by the reader's own look
  socket.unref()
  return { close: () => void socket.destroy() }
}

function openPipe(fd: number): unknown {
  const binding: unknown = Reflect.get(process, 'binding')
  if (typeof binding !== 'function') throw new Error('process.binding is gone')
  const { Pipe, constants } = binding.call(process, 'pipe_wrap')
  const pipe = new Pipe(constants.SOCKET)
  const failure: number = pipe.open(fd)
  if (failure) throw new Error(`the event loop takes no descriptor ${fd}: error ${failure}`)
  return pipe
}
