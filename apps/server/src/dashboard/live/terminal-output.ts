/**
 * Output of a terminal on its way to the page. After Ctrl-C, output that waits between the program and the page is
 * dropped: otherwise the prompt would appear only after megabytes of old output.
 */
import type { OutputWindow } from './output-window.ts'

export interface TerminalOutput {
  /** Resolves when more may be read from the sandbox. */
  push(bytes: Uint8Array): Promise<void>
  /** The user pressed Ctrl-C. Drops waiting output if the page is behind. */
  interrupt(): void
  /** Sends what was kept of dropped output. */
  flush(): void
}

const pieceBytes = 32 * 1024
/** Dropping ends when the sandbox has sent nothing for this long. */
const quietMs = 250
/** Dropping ends after this time even if the program ignores the interrupt. */
const maxDropMs = 5_000
/** The end of the dropped output is kept: the prompt is in it. */
const keptBytes = 2_048

interface Drop {
  bytes: number
  tail: Buffer
  readonly startedAt: number
  timer: NodeJS.Timeout
}

export function createTerminalOutput(
  window: OutputWindow,
  deliver: (bytes: Uint8Array) => void,
): TerminalOutput {
  let drop: Drop | undefined
  const flush = () => {
    if (!drop) return
    const { bytes, tail, timer } = drop
    clearTimeout(timer)
    drop = undefined
    const kept = fromLineStart(tail, bytes)
    const text = Buffer.concat([Buffer.from(describeDrop(bytes - kept.length)), kept])
    // Only the next piece waits until the page has drawn these few bytes.
    void window.sent(text.length).catch(() => {})
    deliver(text)
  }
  const take = (current: Drop, piece: Uint8Array) => {
    current.bytes += piece.length
    current.tail = Buffer.concat([current.tail, piece]).subarray(-keptBytes)
    clearTimeout(current.timer)
    current.timer = setTimeout(flush, quietMs)
    if (performance.now() - current.startedAt > maxDropMs) flush()
  }
  return {
    async push(bytes) {
      for (let start = 0; start < bytes.length; start += pieceBytes) {
        const piece = bytes.subarray(start, start + pieceBytes)
        if (drop) take(drop, piece)
        else {
          deliver(piece)
          await window.sent(piece.length)
        }
      }
    },
    interrupt() {
      if (drop || !window.isFull()) return
      const timer = setTimeout(flush, quietMs)
      drop = { bytes: 0, tail: Buffer.alloc(0), startedAt: performance.now(), timer }
      window.release()
    },
    flush,
  }
}

/** Skips the rest of a line whose begin was dropped, and with it the rest of an escape sequence. */
function fromLineStart(tail: Buffer, bytes: number): Buffer {
  if (bytes <= tail.length) return tail
  const newline = tail.indexOf(0x0a)
  return newline === -1 ? tail : tail.subarray(newline + 1)
}

/** CAN (0x18) ends an escape sequence that was cut. */
function describeDrop(bytes: number): string {
  if (bytes === 0) return ''
  const size = bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} KB`
  return `\u0018\r\n\u001b[0;2m[${size} of output dropped after the interrupt]\u001b[0m\r\n`
}
