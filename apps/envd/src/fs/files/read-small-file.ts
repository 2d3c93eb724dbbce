import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** Returns the content as latin1, one character per byte. Does not follow symlinks or block on pipes and devices. */
export async function readSmallFile(path: string, limitBytes: number): Promise<string> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  await using file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
  const found = await file.stat()
  if (!found.isFile()) throw new Error('is not a regular file')
  if (found.size > limitBytes) throw new Error(`is larger than ${limitBytes} bytes`)
  const bytes = Buffer.alloc(found.size)
  let length = 0
  while (length < bytes.length) {
    const { bytesRead } = await file.read(bytes, { offset: length })
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.toString('latin1', 0, length)
}
