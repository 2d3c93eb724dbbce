/**
 * The file that keeps metadata beside the files, over a restart of the daemon and of the sandbox: one line for each
 * change, rewritten whole when most of it is out of date. A line that was cut short by a crash is passed over.
 */
import { appendFile, mkdir, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import type { Metadata } from '../../domain/files/metadata-store.ts'

export interface KeptRecord {
  /** Which file it is, in the numbers of the life in which it was written. */
  readonly key: string
  /** Where it was last seen. */
  readonly path: string
  readonly metadata: Metadata
}

export interface MetadataJournal {
  /** What was kept, and the life of the sandbox in which that was. Empty when there is nothing. */
  load(): Promise<{ readonly life: string; readonly records: readonly KeptRecord[] }>
  put(record: KeptRecord): void
  forget(key: string): void
  /** Writes the file whole, in the numbers of this life. */
  renew(): void
  /** Resolves when everything up to now is in the file. */
  flush(): Promise<void>
}

export function metadataJournal(options: {
  readonly path: string
  /** What the file should hold now, for when it is rewritten. */
  readonly current: () => { readonly life: string; readonly records: Iterable<KeptRecord> }
}): MetadataJournal {
  const { path } = options
  let waiting = ''
  let sizeBytes = Infinity // the first write rewrites: the file may be damaged, or of another life
  let wholeBytes = 0
  let last = Promise.resolve()

  return {
    load: () => load(path),
    put: ({ key, path: at, metadata }) => append({ key, path: at, metadata }),
    forget: (key) => append({ key }),
    renew() {
      sizeBytes = Infinity
      append({})
    },
    flush: () => last,
  }

  function append(change: object): void {
    const first = waiting === ''
    waiting += `${JSON.stringify(change)}\n`
    if (first) last = last.then(write).catch(() => {})
  }

  /** Failures are passed over (the disk is full): what is in memory stays right, and the next write tries anew. */
  async function write(): Promise<void> {
    const lines = waiting
    waiting = ''
    try {
      if (sizeBytes + lines.length > 2 * wholeBytes + slackBytes) await rewrite()
      else await appendFile(path, lines, { mode: 0o600 })
      sizeBytes += lines.length
    } catch (cause) {
      sizeBytes = Infinity
      throw cause
    }
  }

  async function rewrite(): Promise<void> {
    const { life, records } = options.current()
    const lines = [{ life }, ...records].map((line) => JSON.stringify(line))
    const text = `${lines.join('\n')}\n`
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFileAtomic(path, text)
    wholeBytes = text.length
    sizeBytes = text.length
  }
}

const slackBytes = 64 * 1024

async function load(path: string) {
  const records = new Map<string, KeptRecord>()
  const { size } = await stat(path).catch(() => ({ size: 0 }))
  // Only root could make it larger than we do, and what root put there need not be read.
  const text = size > sizeLimitBytes ? '' : await readFile(path, 'utf8').catch(() => '')
  let life = ''
  for (const line of text.split('\n')) {
    const change = parseLine(line)
    if (change?.life !== undefined) life = change.life
    if (change?.key === undefined) continue
    const { key, path: at, metadata } = change
    if (at !== undefined && metadata !== undefined) records.set(key, { key, path: at, metadata })
    else records.delete(key)
  }
  return { life, records: [...records.values()] }
}

const sizeLimitBytes = 64 * 1024 * 1024

interface Change extends Partial<KeptRecord> {
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
