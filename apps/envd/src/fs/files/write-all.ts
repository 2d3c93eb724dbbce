import { writeSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { createQuickCalls } from './quick-calls.ts'

/**
 * Writes from the beginning. What arrives while a write is under way is gathered and written at once: a call to the system
 * is dear under gVisor, and fresh memory is everywhere. What came before a failure of the source is written too.
 */
export async function writeAll(
  file: FileHandle,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  let gathering: Buffer = Buffer.allocUnsafeSlow(firstBytes)
  let spare: Buffer | undefined
  let gathered = 0
  let writing: Promise<void> | undefined
  const quickly = createQuickCalls()
  try {
    for await (const piece of content) {
      if (piece.length >= directBytes) {
        while (writing) await writing
        await writeLarge(piece)
        continue
      }
      for (let at = 0; at < piece.length;) {
        if (gathered === gathering.length) await writing
        const part = piece.subarray(at, at + gathering.length - gathered)
        gathering.set(part, gathered)
        gathered += part.length
        at += part.length
        if (!writing) begin()
      }
    }
  } finally {
    while (writing) await writing
  }

  function begin(): void {
    writing = write(gathering, gathered)
    writing.catch(() => {}) // seen when it is waited for
    gathering = spare ?? Buffer.allocUnsafeSlow(laterBytes)
    spare = undefined
    gathered = 0
  }

  async function write(full: Buffer, length: number): Promise<void> {
    await writeWhole(full.subarray(0, length))
    writing = undefined
    if (full.length === laterBytes) spare = full
    if (gathered > 0) begin()
  }

  async function writeWhole(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at)).bytesWritten
  }

  async function writeLarge(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      at += await quickly(
        () => writeSync(file.fd, bytes, at),
        async () => (await file.write(bytes, at)).bytesWritten,
      )
    }
  }
}

/** So much is written as it is: the source reads on meanwhile. */
const directBytes = 64 * 1024

/** Most files are smaller. */
const firstBytes = 64 * 1024
const laterBytes = 512 * 1024
