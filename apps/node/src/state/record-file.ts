import { readdir, readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import type { KeyRing, SealingWrite } from '@atoll/kit/encryption/key-ring'
import { isSealed } from '@atoll/kit/encryption/sealed-text'
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'

/*
 * Every record of the node is a JSON file with a format version and a checksum. A record that cannot be read is never
 * taken for one that is absent: callers remove the files of absent records, and quarantine those of unreadable ones.
 */

export interface RecordFormat<T> {
  readonly schema: z.ZodType<T>
  /** Step `n` (from 0) turns a record of version `n + 1` into one of version `n + 2`. Released steps never change. */
  readonly upgrades: ReadonlyArray<(record: JsonObject) => JsonObject>
  /** Absent: records of this kind hold no private values. */
  readonly privateValues?: PrivateValues<T>
}

/**
 * Values of a record that are written sealed. A record without such values keeps the version before `since`, so that
 * releases without encryption can read it.
 */
export interface PrivateValues<T> {
  /** First version whose private values are sealed. */
  readonly since: number
  readonly keys: RecordKeys
  identityOf(record: T): string
  /** Returns the record itself when it has no private values. */
  map(record: T, change: (value: string, field: string) => string): T
}

export type RecordKeys = Pick<KeyRing, 'open' | 'beginWrite' | 'isStale'>

export type JsonObject = Readonly<Record<string, unknown>>

export type RecordReading<T> =
  | { readonly state: 'read'; readonly record: T }
  | { readonly state: 'absent' }
  /** `text`: content of the file, as far as it can be read. */
  | { readonly state: 'unreadable'; readonly reason: string; readonly text: string }

export async function readRecord<T>(
  path: string,
  format: RecordFormat<T>,
): Promise<RecordReading<T>> {
  try {
    return decodeRecord(await readFile(path, 'utf8'), format)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return { state: 'absent' }
    // Other failures, such as too many open files, are temporary and say nothing about the record.
    if (code !== 'EIO' && code !== 'EISDIR' && code !== 'EUCLEAN') throw error
    return { state: 'unreadable', reason: `the file cannot be read (${code})`, text: '' }
  }
}

export function decodeRecord<T>(text: string, format: RecordFormat<T>): RecordReading<T> {
  const unreadable = (reason: string) => ({ state: 'unreadable' as const, reason, text })
  const raw = parseObject(text)
  if (!raw) return unreadable('it is not a JSON object')
  const { version: written = firstVersion, checksum, ...content } = raw
  const newest = versionOf(format)
  if (typeof written !== 'number' || !Number.isInteger(written) || written < firstVersion) {
    return unreadable('its format version is invalid')
  }
  if (written > newest) {
    return unreadable(`it has format ${written}, and this release reads up to ${newest}`)
  }
  // The first releases wrote neither a version nor a checksum.
  const isChecked = 'version' in raw || checksum !== undefined
  if (isChecked && checksum !== checksumOf(content)) return unreadable('its checksum is wrong')
  try {
    const upgraded = format.upgrades
      .slice(written - firstVersion)
      .reduce<JsonObject>((record, upgrade) => upgrade(record), content)
    const parsed = format.schema.safeParse(upgraded)
    if (!parsed.success) return unreadable(describe(parsed.error))
    const { privateValues } = format
    const record = privateValues ? openValues(parsed.data, privateValues, written) : parsed.data
    return { state: 'read', record }
  } catch (error) {
    if (error instanceof Fault) return unreadable(error.message)
    return unreadable(`it cannot be upgraded from format ${written}: ${String(error)}`)
  }
}

/** Encodes a record of a kind that has no private values. */
export function encodeRecord<T extends object>(record: T, format: RecordFormat<T>): string {
  return encode(record, versionOf(format))
}

/** Encodes a record for `write`, with its private values sealed. The caller ends `write` when the text is on disk. */
export function encodePrivate<T extends object>(
  record: T,
  { since, identityOf, map }: PrivateValues<T>,
  write: SealingWrite,
): string {
  const identity = identityOf(record)
  const sealed = map(record, (value, field) => write.seal(value, `${identity}:${field}`))
  return encode(sealed, sealed === record ? since - 1 : since)
}

function encode(record: object, version: number): string {
  return JSON.stringify({ version, checksum: checksumOf(record), ...record })
}

/** Values are plain in old records, but sealed in a record whose version was removed to edit it by hand. */
function openValues<T>(
  record: T,
  { since, keys, identityOf, map }: PrivateValues<T>,
  version: number,
): T {
  const identity = identityOf(record)
  const opened = map(record, (value, field) =>
    version < since && !isSealed(value) ? value : keys.open(value, `${identity}:${field}`),
  )
  if (opened !== record || version < since) return opened
  throw new Fault('internal', 'internal', 'it has no encrypted value, which its format requires')
}

/** Returns whether a record has private values that are plain or have an older key. `text`: its file. */
export function isStale<T>(record: T, text: string, { keys, map }: PrivateValues<T>): boolean {
  let values = 0
  map(record, (value) => ((values += 1), value))
  const sealed = text.match(sealedPattern) ?? []
  return values > 0 && (sealed.length < values || sealed.some((value) => keys.isStale(value)))
}

const sealedPattern = /(?<=")atoll\.sealed\.v1\.[^"\\]+(?=")/g

/** Returns no names when the folder does not exist. */
export async function listNames(dir: string): Promise<string[]> {
  return readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw error
  })
}

function checksumOf(content: object): number {
  return crc32(JSON.stringify(content))
}

const firstVersion = 1

function versionOf({ upgrades }: RecordFormat<unknown>): number {
  return firstVersion + upgrades.length
}

const JsonObjectSchema = z.record(z.string(), z.unknown())

function parseObject(text: string): JsonObject | undefined {
  try {
    return JsonObjectSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** Names fields, never their values: records hold secrets. */
function describe({ issues }: z.ZodError): string {
  const [first] = issues
  const field = first?.path.join('.') || 'the record'
  return `${field} is missing or has an unexpected value`
}
