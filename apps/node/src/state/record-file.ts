import { readdir, readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { z } from 'zod'

/*
 * Every record of the node is a JSON file with a format version and a checksum. A record that cannot be read is never
 * taken for one that is absent: callers remove the files of absent records, and quarantine those of unreadable ones.
 */

export interface RecordFormat<T> {
  readonly schema: z.ZodType<T>
  /** Step `n` (from 0) turns a record of version `n + 1` into one of version `n + 2`. Released steps never change. */
  readonly upgrades: ReadonlyArray<(record: JsonObject) => JsonObject>
}

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
    if (parsed.success) return { state: 'read', record: parsed.data }
    return unreadable(describe(parsed.error))
  } catch (error) {
    return unreadable(`it cannot be upgraded from format ${written}: ${String(error)}`)
  }
}

export function encodeRecord<T extends object>(record: T, format: RecordFormat<T>): string {
  return JSON.stringify({ version: versionOf(format), checksum: checksumOf(record), ...record })
}

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
