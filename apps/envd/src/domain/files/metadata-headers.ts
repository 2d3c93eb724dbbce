/** Key-value metadata that clients attach to an upload. */
import { Fault } from '@atoll/kit/fault'
import type { Metadata } from './metadata-store.ts'

/** Parses `X-Metadata-<Key>: <value>` headers from a flat list of names and values. */
export function parseMetadataHeaders(rawHeaders: readonly string[]): Metadata {
  const found = new Map<string, string>()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!name.startsWith(headerPrefix)) continue
    const key = name.slice(headerPrefix.length)
    if (!found.has(key)) found.set(key, rawHeaders[at + 1] ?? '')
  }
  let total = 0
  for (const [key, value] of found) {
    check(key, value)
    total += attributePrefix.length + key.length + value.length
  }
  if (total > totalLimitBytes) {
    refuse(`Metadata exceeds the limit of ${totalLimitBytes} bytes, including attribute names`)
  }
  return Object.fromEntries(found)
}

function check(key: string, value: string): void {
  if (key === '') refuse('A metadata header has no key. Use X-Metadata-<Key>.')
  if (key.length > keyLimitBytes)
    refuse(`A metadata key exceeds the limit of ${keyLimitBytes} bytes`)
  if (!/^[\x20-\x7e]*$/.test(key + value)) {
    refuse(`Metadata '${key}' is invalid: key and value must be printable ASCII`)
  }
}

const headerPrefix = 'x-metadata-'
const attributePrefix = 'user.e2b.'
const keyLimitBytes = 246
const totalLimitBytes = 4096

function refuse(message: string): never {
  throw new Fault('invalid', 'bad_metadata', message)
}
