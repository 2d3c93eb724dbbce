import { writeSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { createAdaptiveIo } from './adaptive-io.ts'

/**
 * Writes from the start of the file. Chunks that arrive during a write are buffered and written together, because
 * system calls are expensive under gVisor and allocations everywhere. If the source fails, the chunks before are
 * still written.
 */
export async function writeAll(
  file: FileHandle,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  let filling: Buffer = Buffer.allocUnsafeSlow(firstBufferBytes)
  let spare: Buffer | undefined
  let filledBytes = 0
  let writing: Promise<void> | undefined
  const adaptiveIo = createAdaptiveIo()
  try {
    for await (const chunk of content) {
      if (chunk.length >= directWriteBytes) {
        while (writing) await writing
        await writeLarge(chunk)
        continue
      }
      for (let at = 0; at < chunk.length;) {
        if (filledBytes === filling.length) await writing
        const part = chunk.subarray(at, at + filling.length - filledBytes)
        filling.set(part, filledBytes)
        filledBytes += part.length
        at += part.length
        if (!writing) startWrite()
      }
    }
  } finally {
    while (writing) await writing
  }

  function startWrite(): void {
    writing = write(filling, filledBytes)
    writing.catch(() => {}) // awaited later
    filling = spare ?? Buffer.allocUnsafeSlow(laterBufferBytes)
    spare = undefined
    filledBytes = 0
  }

  async function write(full: Buffer, length: number): Promise<void> {
    await writeWhole(full.subarray(0, length))
    writing = undefined
    if (full.length === laterBufferBytes) spare = full
    if (filledBytes > 0) startWrite()
  }

  async function writeWhole(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at)).bytesWritten
  }

  async function writeLarge(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      at += await adaptiveIo(
        () => writeSync(file.fd, bytes, at),
        async () => (await file.write(bytes, at)).bytesWritten,
      )
    }
  }
}

/** Larger chunks are written directly; the source reads ahead meanwhile. */
const directWriteBytes = 64 * 1024

/** Enough for most files. */
const firstBufferBytes = 64 * 1024
const laterBufferBytes = 512 * 1024
