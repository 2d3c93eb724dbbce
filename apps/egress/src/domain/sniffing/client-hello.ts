import { createCursor } from './cursor.ts'
import { toDnsName } from '../dns-name.ts'
import { needMore, noName, searchLimitBytes, type NameSearch } from './name-search.ts'

/**
 * Finds the server name (SNI) in a TLS ClientHello, which may span several records (RFC 8446, 4.1.2 and 5.1; RFC 6066,
 * 3).
 *
 * Threats: see sniff.ts. Every length is checked against the remaining bytes, and lists must fill their space exactly.
 * Ambiguous hellos (two SNI extensions, two names) count as having no name.
 */
export function searchClientHello(bytes: Buffer): NameSearch {
  const message = joinRecords(bytes)
  if (message === 'more') return needMore
  const serverName = message === 'none' ? undefined : serverNameIn(message)
  const name = serverName && toDnsName(serverName.toString('latin1'))
  return name === undefined ? noName : { kind: 'name', name }
}

const handshakeRecord = 22
const clientHello = 1
const largestRecord = 2 ** 14
const recordHead = 5
const messageHead = 4

/** Returns the body of the first handshake message. Stops at the first byte that cannot belong to a ClientHello. */
function joinRecords(bytes: Buffer): Buffer | 'more' | 'none' {
  const joined = Buffer.allocUnsafe(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length;) {
    const size = recordSize(bytes, at)
    if (typeof size === 'string') return size
    length += bytes.copy(joined, length, at + recordHead, at + recordHead + size)
    at += recordHead + size
    if (length > 0 && joined[0] !== clientHello) return 'none'
    if (length < messageHead) continue
    const end = messageHead + joined.readUIntBE(1, 3)
    if (end > searchLimitBytes) return 'none'
    if (length >= end) return joined.subarray(messageHead, end)
  }
  return 'more'
}

function recordSize(bytes: Buffer, at: number): number | 'more' | 'none' {
  const [type, major = 3] = bytes.subarray(at, at + 2)
  if (type !== handshakeRecord || major !== 3) return 'none'
  if (at + recordHead > bytes.length) return 'more'
  const size = bytes.readUInt16BE(at + 3)
  // TLS forbids empty records; a client could send them endlessly.
  return size === 0 || size > largestRecord ? 'none' : size
}

function serverNameIn(hello: Buffer): Buffer | undefined {
  const fields = createCursor(hello)
  const major = fields.number(1)
  fields.bytes(1 + 32) // minor version and random
  const session = fields.vector(1)
  const ciphers = fields.vector(2)
  const compressions = fields.vector(1)
  const extensions = fields.vector(2)
  if (!session || !ciphers || !compressions || !extensions || !fields.isAtEnd()) return undefined
  const isSound =
    major === 3 &&
    session.length <= 32 &&
    ciphers.length >= 2 &&
    ciphers.length % 2 === 0 &&
    compressions.length >= 1
  const list = isSound ? serverNameExtension(extensions) : undefined
  return list && onlyHostName(list)
}

const serverNameType = 0

function serverNameExtension(extensions: Buffer): Buffer | undefined {
  const fields = createCursor(extensions)
  let found: Buffer | undefined
  while (!fields.isAtEnd()) {
    const type = fields.number(2)
    const data = fields.vector(2)
    if (!data) return undefined
    if (type !== serverNameType) continue
    if (found) return undefined
    found = data
  }
  return found
}

const hostNameType = 0

function onlyHostName(extension: Buffer): Buffer | undefined {
  const fields = createCursor(extension)
  const listLength = fields.number(2)
  const type = fields.number(1)
  const name = fields.vector(2)
  const isOnly = fields.isAtEnd() && listLength === extension.length - 2 && type === hostNameType
  return isOnly ? name : undefined
}
