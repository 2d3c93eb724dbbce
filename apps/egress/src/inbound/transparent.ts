import type { Server } from 'node:net'
import koffi from 'koffi'

const libc = koffi.load('libc.so.6')
const setsockopt = libc.func('int setsockopt(int, int, int, const void *, uint32_t)')

const [SOL_IP, IP_TRANSPARENT] = [0, 19]

/** Lets a server take connections that were meant for others. Node.js has no name for this, nor for the descriptor. */
export function makeTransparent(server: Server): void {
  const handle: unknown = Reflect.get(server, '_handle')
  const fd: unknown = typeof handle === 'object' && handle !== null && Reflect.get(handle, 'fd')
  const on = new Int32Array([1])
  if (typeof fd !== 'number' || setsockopt(fd, SOL_IP, IP_TRANSPARENT, on, on.byteLength) < 0) {
    throw new Error(`connections of sandboxes cannot be taken: errno ${koffi.errno()}`)
  }
}
