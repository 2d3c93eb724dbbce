/**
 * Random names from the kernel. Copies of a sandbox that were restored from one memory have the same state of every
 * generator inside this process, and would choose the same names, perhaps in a folder that they share.
 */
import { closeSync, openSync, readSync } from 'node:fs'

/** Sixteen random bytes in hexadecimal. */
export function randomName(): string {
  const fd = openSync('/dev/urandom', 'r')
  try {
    const bytes = Buffer.alloc(16)
    if (readSync(fd, bytes) < bytes.length) throw new Error('/dev/urandom gave too little')
    return bytes.toString('hex')
  } finally {
    closeSync(fd)
  }
}
