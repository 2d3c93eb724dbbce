/**
 * The file that keeps metadata beside the files, over a restart of the daemon and of the sandbox: one line for each
 * change, rewritten whole when most of it is out of date. A line that was cut short by a crash is passed over.
 */
import { appendFile, mkdir, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import type { Metadata } from '../../domain/files/metadata-store.ts'

export interface MetadataRecord {
  /** Which file it is, in the numbers of the life in which it was written. */
  readonly key: string
  /** Where it was last seen. */
  readonly path: string
  readonly metadata: Metadata
}

export interface MetadataJournal {
  /** What was kept, and the life of the sandbox in which that was. Empty when there is nothing. */
  load(): Promise<{ readonly bootId: string; readonly records: readonly MetadataRecord[] }>
  put(record: MetadataRecord): void
  forget(key: string): void
  /** Writes the file whole, in the numbers of this life. */
  rewriteAll(): void
  /** Resolves when everything up to now is in the file. */
  flush(): Promise<void>
}

export function metadataJournal(options: {
  readonly path: string
  /** What the file should hold now, for when it is rewritten. */
  readonly current: () => { readonly bootId: string; readonly records: Iterable<MetadataRecord> }
}): MetadataJournal {
  const { path } = options
  let pending = ''
  let sizeBytes = Infinity // the first write rewrites: the file may be damaged, or of another life
  let rewrittenBytes = 0
  let last = Promise.resolve()

  return {
    load: () => load(path),
    put: ({ key, path: at, metadata }) => append({ key, path: at, metadata }),
    forget: (key) => append({ key }),
    rewriteAll() {
      sizeBytes = Infinity
      append({})
    },
    flush: () => last,
  }

  function append(change: object): void {
    const first = pending === ''
    pending += `${JSON.stringify(change)}\n`
    if (first) last = last.then(write).catch(() => {})
  }

  /** Failures are passed over (the disk is full): what is in memory stays right, and the next write tries anew. */
  async function write(): Promise<void> {
    const lines = pending
    pending = ''
    try {
      if (sizeBytes + lines.length > 2 * rewrittenBytes + rewriteSlackBytes) await rewrite()
      else await appendFile(path, lines, { mode: 0o600 })
      sizeBytes += lines.length
    } catch (cause) {
      sizeBytes = Infinity
      throw cause
    }
  }

  async function rewrite(): Promise<void> {
    const { bootId, records } = options.current()
    const lines = [{ life: bootId }, ...records].map((line) => JSON.stringify(line))
    const text = `${lines.join('\n')}\n`
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFileAtomic(path, text)
    rewrittenBytes = text.length
    sizeBytes = text.length
  }
}

const rewriteSlackBytes = 64 * 1024

async function load(path: string) {
  const records = new Map<string, MetadataRecord>()
  const { size } = await stat(path).catch(() => ({ size: 0 }))
  // Only root could make it larger than we do, and what root put there need not be read.
  const text = size > sizeLimitBytes ? '' : await readFile(path, 'utf8').catch(() => '')
  let bootId = ''
  for (const line of text.split('\n')) {
    const change = parseLine(line)
    if (change?.life !== undefined) bootId = change.life
    if (change?.key === undefined) continue
    const { key, path: at, metadata } = change
    if (at !== undefined && metadata !== undefined) records.set(key, { key, path: at, metadata })
    else records.delete(key)
  }
  return { bootId, records: [...records.values()] }
}

const sizeLimitBytes = 64 * 1024 * 1024

interface Change extends Partial<MetadataRecord> {
  readonly life?: string
}

function parseLine(line: string): Change | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isChange(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isChange(value: unknown): value is Change {
  if (typeof value !== 'object' || value === null) return false
  const { life, key, path, metadata }: Record<string, unknown> = { ...value }
  const texts = [life, key, path].every((text) => text === undefined || typeof text === 'string')
  return texts && (metadata === undefined || isTexts(metadata))
}

function isTexts(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((text) => typeof text === 'string')
  )
}
