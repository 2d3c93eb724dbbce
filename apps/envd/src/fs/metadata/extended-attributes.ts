/**
 * Metadata in extended attributes `user.e2b.<key>`. Threats: any program in the sandbox may set such attributes, in
 * any number and size, with any bytes.
 */
import { isUtf8 } from 'node:buffer'
import { Fault } from '@atoll/kit/fault'
import type { Metadata } from '../../domain/files/metadata-store.ts'
import { cString, errno } from '../../linux/libc.ts'
import type { Libc } from '../../linux/libc.ts'

export interface ExtendedAttributes {
  /** Whether the file system supports extended attributes. */
  areSupported(path: string | Uint8Array): boolean
  read(path: string | Uint8Array): Metadata
  /**
   * Returns false if the file system does not support attributes or has no space for these; the file then has none.
   */
  replace(path: string, metadata: Metadata): boolean
}

export function extendedAttributes(libc: () => Libc): ExtendedAttributes {
  return { areSupported, read, replace }

  function areSupported(path: string | Uint8Array): boolean {
    const { getAttribute, errno: lastError } = libc()
    const result = getAttribute(cString(path), cString(`${prefix}-`), buffer, buffer.length)
    return result >= 0 || lastError() !== errno.notSupported
  }

  function read(path: string | Uint8Array): Metadata {
    const metadata: [string, string][] = []
    const file = cString(path)
    let room = readLimitBytes
    for (const name of namesOf(file)) {
      const value = valueOf(file, name)
      if (value === undefined) continue
      room -= name.length + value.length
      if (room < 0) break
      metadata.push([name.slice(prefix.length), value])
    }
    return Object.fromEntries(metadata)
  }

  /** Returns the attribute names with the prefix; names that are not UTF-8 are skipped. */
  function namesOf(file: Uint8Array): string[] {
    const size = libc().listAttributes(file, buffer, buffer.length)
    if (size <= 0) return []
    return split(Buffer.from(buffer.subarray(0, size)))
      .filter(isUtf8)
      .map(String)
      .filter((name) => name.startsWith(prefix) && name.length > prefix.length)
  }

  function valueOf(file: Uint8Array, name: string): string | undefined {
    const size = libc().getAttribute(file, cString(name), buffer, buffer.length)
    const value = buffer.subarray(0, Math.max(0, size))
    return size >= 0 && isUtf8(value) ? value.toString('utf8') : undefined
  }

  function replace(path: string, metadata: Metadata): boolean {
    const file = cString(path)
    for (const name of namesOf(file)) {
      if (Object.hasOwn(metadata, name.slice(prefix.length))) continue
      libc().removeAttribute(file, cString(name))
    }
    for (const [key, text] of Object.entries(metadata)) {
      const value = Buffer.from(text)
      if (libc().setAttribute(file, cString(prefix + key), value, value.length, 0) >= 0) continue
      const number = libc().errno()
      if (!isRefusal(number)) throw notSet(path, number)
      for (const name of namesOf(file)) libc().removeAttribute(file, cString(name))
      return false
    }
    return true
  }
}

function isRefusal(number: number): boolean {
  const refusals: readonly number[] = [
    errno.notSupported,
    errno.noSpace,
    errno.tooBig,
    errno.outOfRange,
  ]
  return refusals.includes(number)
}

function notSet(path: string, number: number): Fault {
  const text = `Failed to set metadata of '${path}': system error ${number}`
  return new Fault('internal', 'metadata_failed', text)
}

function split(list: Buffer): Buffer[] {
  const names: Buffer[] = []
  for (let at = 0; at < list.length;) {
    const end = list.indexOf(0, at)
    names.push(list.subarray(at, end < 0 ? list.length : end))
    at = end < 0 ? list.length : end + 1
  }
  return names
}

const prefix = 'user.e2b.'

/** Shared buffer of the kernel's maximum for a list or value. Calls are synchronous, so they never overlap. */
const buffer = Buffer.alloc(64 * 1024)

/** Programs in the sandbox may attach far more than envd does. */
const readLimitBytes = 64 * 1024
