import { readlinkSync } from 'node:fs'
import { basename } from 'node:path'

/** Returns the kernel's name of a block device, such as `loop3`, or undefined for a file system without a device. */
export function blockDeviceName(number: number): string | undefined {
  // glibc packs 12 bits of the major number above the low 8 bits of the minor; the other bits follow above.
  const major = (number >> 8) & 0xfff
  const minor = (number & 0xff) | ((number >> 12) & ~0xff)
  if (major === 0) return undefined
  return basename(readlinkSync(`/sys/dev/block/${major}:${minor}`))
}
