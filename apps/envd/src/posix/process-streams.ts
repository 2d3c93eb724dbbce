import type { Readable, Writable } from 'node:stream'
import { Fault } from '@atoll/kit/fault'
import type { Input } from '../domain/process/process.ts'

/** Yields chunks until the stream ends, fails (a terminal ends with EIO) or is destroyed. */
export async function* untilClosed(stream: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stream) yield chunk
  } catch {
    // A read error means the end of the output.
  }
}

export function toProcessInput(stream: Writable): Input {
  stream.on('error', () => {}) // each write reports its own error
  return {
    write(bytes) {
      if (stream.destroyed || stream.writableEnded) return Promise.reject(inputClosed())
      if (stream.writableLength + bytes.length > pendingLimitBytes)
        return Promise.reject(inputFull())
      return new Promise((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(inputClosed(error)) : resolve()))
      })
    },
    end() {
      if (!stream.destroyed && !stream.writableEnded) stream.end()
    },
  }
}

/** Limit of input that the program has not read. Above the largest request, so that a single one always fits. */
const pendingLimitBytes = 128 * 1024 * 1024

function inputClosed(cause?: Error): Fault {
  return new Fault('internal', 'stdin_closed', 'The process has closed its input or exited', {
    cause,
  })
}

function inputFull(): Fault {
  return new Fault(
    'exhausted',
    'stdin_full',
    `The process does not read its input (${pendingLimitBytes} bytes are pending). Retry later.`,
  )
}
