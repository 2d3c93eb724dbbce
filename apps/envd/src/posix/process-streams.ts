import type { Readable, Writable } from 'node:stream'
import { Fault } from '@atoll/kit/fault'
import type { Input } from '../domain/process/process.ts'

/** What a stream yields until it ends, whether in order, by an error (a terminal ends with EIO) or by being destroyed. */
export async function* untilClosed(stream: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stream) yield chunk
  } catch {
    // Nothing more can be read, which is all that a reader of output has to know.
  }
}

export function toProcessInput(stream: Writable): Input {
  stream.on('error', () => {}) // each write has its own answer
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

/** Input that the program has not read yet. More than the largest single request, so that one always fits. */
const pendingLimitBytes = 128 * 1024 * 1024

function inputClosed(cause?: Error): Fault {
  return new Fault('internal', 'stdin_closed', 'The input of the process is closed', { cause })
}

function inputFull(): Fault {
  return new Fault(
    'exhausted',
    'stdin_full',
    'The process does not read its input: try again later',
  )
}
