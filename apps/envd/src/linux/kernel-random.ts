/**
 * Random names from the kernel. Sandboxes restored from one checkpoint share the state of all in-process
 * generators, and would pick the same names, possibly in a shared folder.
 */
import { closeSync, openSync, readSync } from 'node:fs'

/** Returns sixteen random bytes in hexadecimal. */
export function randomName(): string {
  const fd = openSync('/dev/urandom', 'r')
  try {
    const bytes = Buffer.alloc(16)
    if (readSync(fd, bytes) < bytes.length)
      throw new Error('/dev/urandom returned fewer bytes than requested')
    return bytes.toString('hex')
  } finally {
    closeSync(fd)
  }
}
