/**
 * Logs one process: its start, its output lines and its end. Output past the rate limit is only counted, not
 * parsed.
 */
import type { ProcessEnd } from '../domain/process/process-end.ts'
import { createTokenBucket, truncate } from '../domain/sandbox/log.ts'
import type { LogFields } from '../domain/sandbox/log.ts'
import type { OutputKind } from '../domain/process/process.ts'
import type { SandboxLog } from './log.ts'

export interface ProcessLog {
  /** Does not keep the bytes. */
  output(kind: OutputKind, bytes: Uint8Array): void
  ended(end: ProcessEnd): void
}

export function createProcessLog(
  log: SandboxLog,
  process: {
    readonly pid: number
    readonly tag?: string | undefined
    readonly command: readonly string[]
    readonly user: string
  },
  nowMs: () => number,
): ProcessLog {
  const { pid, tag } = process
  const identity = {
    logger: 'process',
    pid: String(pid),
    ...(tag !== undefined && { tag: truncate(tag, tagLimit) }),
  }
  log.write('info', 'Process started', {
    ...identity,
    user: process.user,
    command: commandText(process.command),
  })
  const allowance = createTokenBucket(lineLimit, nowMs)
  const streams = {
    stdout: createLineBuffer(log, { ...identity, stream: 'stdout' }),
    stderr: createLineBuffer(log, { ...identity, stream: 'stderr' }),
  }

  return {
    output(kind, bytes) {
      // Terminal output is cursor movements and echoed input, not lines.
      if (kind === 'pty') return
      const lines = streams[kind]
      const isAllowed = () => allowance.hasTokens() && log.canWrite()
      if (!isAllowed()) return lines.skip(bytes.length)
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      for (let at = 0; at < buffer.length;) {
        if (!isAllowed()) return lines.skip(buffer.length - at)
        const newline = buffer.indexOf(0x0a, at)
        const end = newline < 0 ? buffer.length : newline
        lines.add(buffer, at, end)
        if (newline >= 0) {
          lines.finish()
          allowance.spend(1)
        }
        at = end + 1
      }
    },
    ended({ exitCode, status }) {
      streams.stdout.finish()
      streams.stderr.finish()
      log.write('info', 'Process ended', { ...identity, exitCode: String(exitCode), status })
    },
  }
}

export function commandText(command: readonly string[]): string {
  return truncate(command.join(' '), commandLimit)
}

interface LineBuffer {
  /** Appends bytes to the current line. */
  add(buffer: Buffer, start: number, end: number): void
  /** Ends the current line and logs it, unless it is empty. */
  finish(): void
  /** Drops bytes. The rest of the line in which they end is dropped too, because its start is unknown. */
  skip(bytes: number): void
}

function createLineBuffer(log: SandboxLog, fields: LogFields): LineBuffer {
  let held = Buffer.alloc(0)
  let size = 0
  let isSkipping = false
  const begin = (broken: boolean) => {
    held = Buffer.alloc(0)
    size = 0
    isSkipping = broken
  }
  return {
    add(buffer, start, end) {
      if (isSkipping) return log.countDropped(end - start)
      if (size < lineLimitBytes) {
        held = Buffer.concat([held, buffer.subarray(start, Math.min(end, start + lineLimitBytes))])
      }
      size += end - start
    },
    finish() {
      if (size > 0) log.write('info', lineText(held, size), fields)
      begin(false)
    },
    skip(bytes) {
      log.countDropped(size + bytes)
      begin(true)
    },
  }
}

function lineText(held: Buffer, size: number): string {
  if (size <= lineLimitBytes) return held.toString('utf8').replace(/\r$/, '')
  return `${held.toString('utf8', 0, lineLimitBytes)}… (${size - lineLimitBytes} bytes more)`
}

const lineLimit = { burst: 500, perSecond: 100 }
const lineLimitBytes = 2048
const commandLimit = 1024
const tagLimit = 256
