/**
 * Journal that keeps inode metadata across restarts of envd and the sandbox: one line per change, compacted when
 * most of it is obsolete. A line truncated by a crash is skipped.
 */
import { appendFile, mkdir, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import type { Metadata } from '../../domain/files/metadata-store.ts'

export interface MetadataRecord {
  /** Device and inode number, valid in the boot that wrote the record. */
  readonly key: string
  /** Last known path. */
  readonly path: string
  readonly metadata: Metadata
}

export interface MetadataJournal {
  /** Returns the records and the boot that wrote them; both are empty without a journal. */
  load(): Promise<{ readonly bootId: string; readonly records: readonly MetadataRecord[] }>
  put(record: MetadataRecord): void
  forget(key: string): void
  /** Compacts the journal, with the inode numbers of this boot. */
  rewriteAll(): void
  /** Resolves when all changes so far are in the file. */
  flush(): Promise<void>
}

export function metadataJournal(options: {
  readonly path: string
  /** Returns the full content for a compaction. */
  readonly current: () => { readonly bootId: string; readonly records: Iterable<MetadataRecord> }
}): MetadataJournal {
  const { path } = options
  let pending = ''
  let sizeBytes = Infinity // forces a rewrite first: the file may be damaged or from another boot
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

  /** Errors such as a full disk are ignored: memory stays correct, and the next write rewrites the file. */
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
  // envd never writes a larger file; only root could have.
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
  /** Boot ID. The key is part of the file format. */
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
  return texts && (metadata === undefined || isStringRecord(metadata))
}

function isStringRecord(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((text) => typeof text === 'string')
  )
}
