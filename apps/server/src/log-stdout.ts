import { writeSync } from 'node:fs'
import { createLineWriter } from './log-lines.ts'
import type { LineWriter } from './log-lines.ts'

const standardOutput = 1
const retryMs = 10
const maxRetries = 100

/**
 * Writes log lines to standard output. Pino's own destination never returns from a write to a full disk. A slow reader
 * blocks the server for one second at most; after that, lines are dropped until it reads again.
 */
export function stdoutLines(): LineWriter {
  let isStuck = false
  return createLineWriter({
    prepare() {},
    write(bytes) {
      const retries = isStuck ? 0 : maxRetries
      isStuck = true
      const written = writeWhenReady(standardOutput, bytes, retries)
      isStuck = false
      return written
    },
  })
}

function writeWhenReady(descriptor: number, bytes: Buffer, retries: number): number {
  for (let retry = 0; ; retry += 1) {
    try {
      return writeSync(descriptor, bytes)
    } catch (error) {
      const isBusy = error instanceof Error && 'code' in error && error.code === 'EAGAIN'
      if (!isBusy || retry === retries) throw error
      Atomics.wait(neverChanged, 0, 0, retryMs) // sleep
    }
  }
}

const neverChanged = new Int32Array(new SharedArrayBuffer(4))
