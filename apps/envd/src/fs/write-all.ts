import type { FileHandle } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'

/**
 * Writes from the beginning, and closes the file. What arrives while a write is under way is gathered and
 * written at once: a call to the system is dear under gVisor. At most `gatheredBytes` wait, then the source does.
 */
export async function writeAll(
  file: FileHandle,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  await pipeline(content, file.createWriteStream({ highWaterMark: gatheredBytes }))
}

const gatheredBytes = 1024 * 1024
