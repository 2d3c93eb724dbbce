/**
 * File with the keys of an installation: one key of 64 hexadecimal digits per line, the current key first. Lines that
 * start with # are comments. `openssl rand -hex 32` makes such a file.
 */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '../atomic-file.ts'
import { Fault } from '../fault.ts'
import { createKeyRing, newKey } from './key-ring.ts'
import type { KeyRing } from './key-ring.ts'
import { keyBytes, toEncryptionKey } from './sealed-text.ts'
import type { EncryptionKey } from './sealed-text.ts'

export interface KeyFile {
  readonly path: string
  /** Whether the operator supplied the file. Such a file is never created. */
  readonly isSupplied: boolean
}

/** `supplied`: value of `ATOLL_ENCRYPTION_KEY_FILE`. */
export function keyFileOf(dataDir: string, supplied: string | undefined): KeyFile {
  return supplied === undefined
    ? { path: join(dataDir, 'encryption-keys'), isSupplied: false }
    : { path: supplied, isSupplied: true }
}

export interface OpenedKeyFile {
  readonly keyRing: KeyRing
  /** Whether the file does not exist yet. Its first key is in memory only, and must not be used before `save`. */
  readonly isNew: boolean
  /** Writes a new file. The key is on disk on return. */
  save(): Promise<void>
}

/** Changes nothing: without a file in the data directory it makes a key that is not saved yet. */
export async function openKeyFile(file: KeyFile): Promise<OpenedKeyFile> {
  const found = await readKeys(file)
  const keys = found ?? [newKey()]
  return {
    keyRing: createKeyRing(keys, (next) => writeKeys(file, next)),
    isNew: found === undefined,
    save: () => writeKeys(file, keys),
  }
}

/** Opens the keys, and creates the file of the data directory if there is none. */
export async function ensureKeyFile(file: KeyFile): Promise<KeyRing> {
  const opened = await openKeyFile(file)
  if (opened.isNew) await opened.save()
  return opened.keyRing
}

async function readKeys(file: KeyFile): Promise<EncryptionKey[] | undefined> {
  const text = await readFile(file.path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' && !file.isSupplied) return undefined
    throw refused(file, `cannot be read (${error.code})`, error)
  })
  if (text === undefined) return undefined
  const { mode } = await stat(file.path)
  if ((mode & 0o077) !== 0) {
    throw refused(file, `can be read by other users than its owner. Run: chmod 600 ${file.path}`)
  }
  return parseKeys(file, text)
}

function parseKeys(file: KeyFile, text: string): EncryptionKey[] {
  const lines = text.split('\n').map((line) => line.trim())
  const written = lines.filter((line) => line !== '' && !line.startsWith('#'))
  // The message must not repeat the line, which may be most of a key.
  if (written.length === 0 || !written.every((line) => keyPattern.test(line))) {
    throw refused(file, `must hold one key of ${keyBytes * 2} hexadecimal digits per line`)
  }
  const keys = written.map((line) => toEncryptionKey(Buffer.from(line, 'hex')))
  return [...new Map(keys.map((key) => [key.id, key])).values()]
}

const keyPattern = /^[0-9a-fA-F]{64}$/

const comment = `# Keys that encrypt the secrets of this installation, the current key first. Without them those secrets are lost:
# keep a copy, apart from other backups. "atoll encryption rotate" replaces the key.
`

async function writeKeys(file: KeyFile, keys: readonly EncryptionKey[]): Promise<void> {
  const lines = keys.map(({ secret }) => `${secret.export().toString('hex')}\n`)
  try {
    await writeFileAtomic(file.path, `${comment}${lines.join('')}`, 0o600)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'failed'
    throw refused(file, `cannot be written (${code}). Nothing was changed`, error)
  }
}

function refused({ path }: KeyFile, why: string, cause?: unknown): Fault {
  return new Fault('conflict', 'encryption_key_file', `The key file ${path} ${why}`, { cause })
}
