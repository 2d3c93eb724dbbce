import { appendFile, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { lastPrintedOf, matchesQuery } from '../domain/sandboxes/log.ts'
import type { KeptLog, LogEntry, LogFiles, LogQuery, PrintedLine } from '../domain/sandboxes/log.ts'

/**
 * Stores sandbox logs as JSON lines, oldest first, in two files per sandbox. When the newer file is full, it replaces
 * the older one. Logs outlive their sandbox. Writes are not synced: a crash of the machine loses the last seconds.
 */
export function createLogFiles(dir: string, fileLimitBytes = 1024 * 1024): LogFiles {
  const states = new Map<string, LogState>()
  const newer = (sandboxId: string) => join(dir, `${sandboxId}.jsonl`)
  const older = (sandboxId: string) => join(dir, `${sandboxId}.old.jsonl`)

  async function loadState(sandboxId: string): Promise<LogState> {
    const found = states.get(sandboxId) ?? (await readState(newer(sandboxId), older(sandboxId)))
    states.set(sandboxId, found)
    return found
  }

  return {
    lastAt: async (sandboxId) => (await loadState(sandboxId)).lastAt,

    lastPrinted: async (sandboxId) => (await loadState(sandboxId)).lastPrinted,

    async append(sandboxId, entries) {
      const last = entries.at(-1)
      if (!last) return
      const state = await loadState(sandboxId)
      const lines = entries.map((entry) => `${toLine(entry)}\n`).join('')
      const text = state.isTorn ? `\n${lines}` : lines
      states.delete(sandboxId) // unknown until the write has succeeded
      await mkdir(dir, { recursive: true, mode: 0o700 })
      if (state.sizeBytes > fileLimitBytes) await rename(newer(sandboxId), older(sandboxId))
      await appendFile(newer(sandboxId), text, { mode: 0o600 })
      const keptBytes = state.sizeBytes > fileLimitBytes ? 0 : state.sizeBytes
      const sizeBytes = keptBytes + Buffer.byteLength(text)
      const lastPrinted = lastPrintedOf(entries) ?? state.lastPrinted
      states.set(sandboxId, { lastAt: last.at, sizeBytes, isTorn: false, lastPrinted })
    },

    async read(query) {
      const { sandboxId, limit, newestFirst } = query
      const files = [await readOrEmpty(newer(sandboxId)), await readOrEmpty(older(sandboxId))]
      const lines = linesOf(files, query)
      const mayMatch = createPrefilter(query)
      const entries: LogEntry[] = []
      let scanned = 0
      for (const line of newestFirst ? lines : [...lines].toReversed()) {
        if (entries.length >= limit) break
        if (++scanned % linesPerTurn === 0) await setImmediate()
        const entry = mayMatch(line) ? fromLine(line) : undefined
        if (entry && matchesQuery(entry, query)) entries.push(entry)
      }
      return entries
    },

    async list() {
      const names = await readdir(dir).catch(() => [])
      const logs = new Map<string, KeptLog>()
      for (const name of names) {
        const [sandboxId = ''] = name.split('.', 1)
        const found = await stat(join(dir, name)).catch(() => undefined)
        if (!found) continue
        const { sizeBytes = 0, writtenAtMs = 0 } = logs.get(sandboxId) ?? {}
        logs.set(sandboxId, {
          sandboxId,
          sizeBytes: sizeBytes + found.size,
          writtenAtMs: Math.max(writtenAtMs, found.mtimeMs),
        })
      }
      return [...logs.values()]
    },

    async find(sandboxId) {
      const paths = [newer(sandboxId), older(sandboxId)]
      const stats = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)))
      const found = stats.filter((one) => one !== undefined)
      if (found.length === 0) return undefined
      return {
        sandboxId,
        sizeBytes: found.reduce((sum, { size }) => sum + size, 0),
        writtenAtMs: Math.max(...found.map(({ mtimeMs }) => mtimeMs)),
      }
    },

    async remove(sandboxId) {
      states.delete(sandboxId)
      for (const path of [newer(sandboxId), older(sandboxId)]) await rm(path, { force: true })
    },

    release: (sandboxId) => void states.delete(sandboxId),
  }
}

interface LogState {
  readonly lastAt: number
  /** Size of the newer file. */
  readonly sizeBytes: number
  /** Whether a crash cut off the last line. */
  readonly isTorn: boolean
  readonly lastPrinted: PrintedLine | undefined
}

async function readState(newer: string, older: string): Promise<LogState> {
  const files = [await readOrEmpty(newer), await readOrEmpty(older)] as const
  let lastAt = 0
  let lastPrinted: PrintedLine | undefined
  let scanned = 0
  for (const line of linesOf(files, {})) {
    scanned += 1
    const mayBePrinted = lastPrinted === undefined && line.includes(streamField)
    const entry = lastAt === 0 || mayBePrinted ? fromLine(line) : undefined
    if (lastAt === 0) lastAt = entry?.at ?? 0
    lastPrinted ??= entry && lastPrintedOf([entry])
    if (lastAt > 0 && (lastPrinted || scanned >= linesPerTurn)) break
  }
  const [{ length, [length - 1]: lastByte }] = files
  return {
    ...{ lastAt, sizeBytes: length, lastPrinted },
    isTorn: length > 0 && lastByte !== newline,
  }
}

function readOrEmpty(path: string): Promise<Buffer> {
  return readFile(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  })
}

/** Yields the lines of a time range, newest first. Scans only as far as the caller iterates. */
function* linesOf(
  files: readonly Buffer[],
  { fromMs = 0, beforeMs = Infinity }: Pick<LogQuery, 'fromMs' | 'beforeMs'>,
): Generator<Buffer> {
  for (const file of files) {
    for (let end = file.length; end > 0;) {
      const start = end > 1 ? file.lastIndexOf(newline, end - 2) + 1 : 0
      const at = timeOf(file, start)
      if (at < fromMs) return
      if (at < beforeMs) yield file.subarray(start, file[end - 1] === newline ? end - 1 : end)
      end = start
    }
  }
}

/** Number of lines to scan before yielding to the event loop. */
const linesPerTurn = 500

const newline = 0x0a
const comma = 0x2c
const lineStart = '{"at":'
const streamField = Buffer.from('"stream":')

function toLine({ at, level, message, fields }: LogEntry): string {
  return JSON.stringify({ at, level, message, fields })
}

/** Reads the time at the start of a line without parsing the line. Returns NaN for a torn line. */
function timeOf(file: Buffer, start: number): number {
  let at = start + lineStart.length
  let time = 0
  for (let digit = digitAt(file, at); digit >= 0 && digit <= 9; digit = digitAt(file, at)) {
    time = time * 10 + digit
    at += 1
  }
  return file[at] === comma ? time : NaN
}

function digitAt(file: Buffer, at: number): number {
  return (file[at] ?? 0) - 0x30
}

/** Searches the raw line for the JSON-encoded text, which is ten times cheaper than parsing the line. */
function createPrefilter({ search }: LogQuery): (line: Buffer) => boolean {
  if (!search) return () => true
  const encoded = Buffer.from(JSON.stringify(search).slice(1, -1))
  return (line) => line.includes(encoded)
}

function fromLine(line: Buffer): LogEntry | undefined {
  try {
    return JSON.parse(line.toString('utf8'))
  } catch {
    return undefined // cut off by a crash
  }
}
