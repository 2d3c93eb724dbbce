/**
 * Writes log lines to an output that may fail at any time: a full disk, a deleted folder, a closed pipe. A line that
 * cannot be written is dropped and counted, so logging never throws. Once writing works again, a log line states how
 * many lines are missing and why.
 */
export interface LineWriter {
  write(line: string): void
}

export interface LineOutput {
  /** Makes room for `sizeBytes`. Throws when nothing can be written. */
  prepare(sizeBytes: number): void
  /** Writes some or all of the bytes and returns how many. Throws when nothing can be written. */
  write(bytes: Buffer): number
}

export function createLineWriter(output: LineOutput): LineWriter {
  let dropped = 0
  let reason = ''
  /** True after a partial write, so that the next line starts on a new line. */
  let isTorn = false
  return {
    write(line) {
      try {
        const notice = dropped > 0 ? droppedNotice(dropped, reason) : ''
        if (notice) {
          writeLine(notice)
          dropped = 0
        }
        writeLine(line)
      } catch (error) {
        dropped += 1
        reason = error instanceof Error && 'code' in error ? String(error.code) : String(error)
      }
    },
  }

  function writeLine(line: string): void {
    const bytes = Buffer.from(isTorn ? `\n${line}` : line)
    output.prepare(bytes.length)
    for (let sent = 0; sent < bytes.length;) {
      sent += output.write(bytes.subarray(sent))
      isTorn = sent < bytes.length
    }
  }
}

const warnLevel = 40

function droppedNotice(lines: number, reason: string): string {
  const msg = `${lines} log lines before this one are missing: they could not be written (${reason})`
  const entry = { level: warnLevel, time: Date.now(), event: 'log.dropped', lines, reason, msg }
  return `${JSON.stringify(entry)}\n`
}
