/** Appends to the file of one recording. Lines are whole or missing: a crash leaves at most one broken line, at the end. */
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { formatOutput, formatResize } from './asciicast.ts'
import type { CastSize } from './asciicast.ts'

export interface Recording {
  readonly id: string
  write(bytes: Uint8Array): void
  resize(size: CastSize): void
  /** Resolves when everything is in the file. */
  close(): Promise<void>
}

/** Lines that the disk has not taken yet. Beyond this the recording ends: the terminal must not wait for the disk. */
const maxWaitingBytes = 8 * 2 ** 20

export interface RecordingFileParts {
  readonly id: string
  readonly file: FileHandle
  /** Bytes in the file. */
  readonly size: number
  readonly maxBytes: number
  /** Seconds since the recording began. */
  elapsedSeconds(): number
  /** Called once, if the recording ends before it was asked to. */
  onStopped(reason: string): void
  onClosed(): void
}

export function createRecording(parts: RecordingFileParts): Recording {
  const { file, elapsedSeconds } = parts
  const decoder = new TextDecoder()
  let size = parts.size
  let waiting: string[] = []
  let waitingBytes = 0
  let writing: Promise<void> | undefined
  let isEnded = false

  const writeAll = async () => {
    while (waiting.length > 0) {
      const text = waiting.join('')
      waiting = []
      waitingBytes = 0
      await file.appendFile(text)
    }
  }
  const end = (reason?: string) => {
    if (isEnded) return
    isEnded = true
    if (reason !== undefined) parts.onStopped(reason)
  }
  const startWriting = () => {
    writing ??= writeAll()
      .catch((error: unknown) => {
        waiting = []
        end(`The recording cannot be written: ${describe(error)}`)
      })
      .finally(() => (writing = undefined))
  }
  const append = (line: string) => {
    if (isEnded) return
    const bytes = Buffer.byteLength(line)
    if (size + bytes > parts.maxBytes) {
      return end(`The recording has reached its limit of ${parts.maxBytes / 2 ** 20} MiB`)
    }
    if (waitingBytes + bytes > maxWaitingBytes) return end('The disk is too slow for the recording')
    size += bytes
    waitingBytes += bytes
    waiting.push(line)
    return startWriting()
  }
  let closing: Promise<void> | undefined
  const close = async () => {
    end()
    await writing
    await file.close()
    parts.onClosed()
  }
  return {
    id: parts.id,
    write(bytes) {
      const text = decoder.decode(bytes, { stream: true })
      if (text !== '') append(formatOutput(elapsedSeconds(), text))
    },
    resize: (changed) => append(formatResize(elapsedSeconds(), changed)),
    close: () => (closing ??= close()),
  }
}

const tailBytes = 2 ** 20

/** Returns the size of the whole lines of a file: a crash may have cut the last line. */
export async function wholeLinesSize(path: string): Promise<number> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const start = Math.max(0, size - tailBytes)
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(size - start),
      0,
      size - start,
      start,
    )
    return start + buffer.subarray(0, bytesRead).lastIndexOf(0x0a) + 1
  } finally {
    await file.close()
  }
}

function describe(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'the disk failed'
}
