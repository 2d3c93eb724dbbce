import type { Server } from 'node:net'
import koffi from 'koffi'

const libc = koffi.load('libc.so.6')
const setsockopt = libc.func('int setsockopt(int, int, int, const void *, uint32_t)')

const [SOL_IP, IP_TRANSPARENT] = [0, 19]

/**
 * Sets IP_TRANSPARENT, which lets a server accept connections to foreign addresses. Node.js exposes neither the option
 * nor the file descriptor, so this reads the private `_handle`.
 */
export function makeTransparent(server: Server): void {
  const handle: unknown = Reflect.get(server, '_handle')
  const fd: unknown = typeof handle === 'object' && handle !== null && Reflect.get(handle, 'fd')
  const on = new Int32Array([1])
  if (typeof fd !== 'number' || setsockopt(fd, SOL_IP, IP_TRANSPARENT, on, on.byteLength) < 0) {
    throw new Error(
      `Cannot accept redirected connections: setting IP_TRANSPARENT failed (errno ${koffi.errno()}). Start the egress proxy as root.`,
    )
  }
}
