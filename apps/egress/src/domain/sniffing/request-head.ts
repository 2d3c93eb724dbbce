import { toDnsName } from '../dns-name.ts'
import { needMore, noName, type NameSearch } from './name-search.ts'

/**
 * Finds the host of an HTTP/1 request (RFC 9112, 2 to 5).
 *
 * Threats: see sniff.ts. Servers tolerate different malformed requests, and each difference is a way to show one host
 * to the proxy and another to the server: bare CR or LF, folded lines, spaces before a colon, a second Host, a target
 * with a host of its own. Such requests count as having no name.
 */
export function searchRequestHead(bytes: Buffer): NameSearch {
  const lineEnd = bytes.indexOf('\r\n')
  const line = bytes.toString('latin1', 0, lineEnd === -1 ? bytes.length : lineEnd)
  if (lineEnd === -1) return canBeginRequest(line) ? needMore : noName

  const target = targetIn(line)
  const end = target && endOfHead(bytes)
  if (!target || end === 'never') return noName
  if (end === undefined) return needMore

  const host = onlyHost(bytes.toString('latin1', lineEnd + 2, end))
  const isOther = target.authority !== undefined && target.authority !== host
  const name = host === undefined || isOther ? undefined : toDnsName(withoutPort(host))
  return name === undefined ? noName : { kind: 'name', name }
}

const versions = ['HTTP/1.0', 'HTTP/1.1']
const methodBegin = /^[A-Za-z]{0,32}$/
const visible = /^[\x21-\x7e\x80-\xff]*$/

/**
 * Whether an incomplete line may become a request line. Clients of other protocols must not have to wait for a line
 * end.
 */
function canBeginRequest(line: string): boolean {
  const [method = '', target, version, rest] = line.split(' ', 4)
  if (!methodBegin.test(method)) return false
  if (target === undefined) return true
  if (!isMethod(method) || !visible.test(target)) return false
  if (version === undefined) return true
  return (
    target !== '' && rest === undefined && versions.some((each) => `${each}\r`.startsWith(version))
  )
}

interface Target {
  /** Host in the request target, in lower case, if the target is in absolute form. */
  readonly authority?: string
}

const absoluteForm = /^https?:\/\/([^/?#]+)/i

function targetIn(line: string): Target | undefined {
  const [method = '', target = '', version = '', rest] = line.split(' ', 4)
  const isRequest = isMethod(method) && methodBegin.test(method) && versions.includes(version)
  if (!isRequest || rest !== undefined || !visible.test(target)) return undefined
  if (target.startsWith('/') || target === '*') return {}
  const authority = absoluteForm.exec(target)?.[1]
  return authority === undefined ? undefined : { authority: authority.toLowerCase() }
}

/** CONNECT names the host of a tunnel, and no HTTP follows it. */
function isMethod(word: string): boolean {
  return word !== '' && word.toUpperCase() !== 'CONNECT'
}

// Bare CR, bare LF, or a folded line (obs-fold).
const untrusted = /\r[^\n]|[^\r]\n|\n[\t ]/

/** Returns the offset after the empty line: undefined while that line is missing, 'never' if the head is malformed. */
function endOfHead(bytes: Buffer): number | 'never' | undefined {
  const emptyLine = bytes.indexOf('\r\n\r\n')
  const end = emptyLine === -1 ? undefined : emptyLine + 4
  return untrusted.test(bytes.toString('latin1', 0, end)) ? 'never' : end
}

// No two adjacent parts match the same character, so matching takes linear time.
const fieldForm = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t\x20-\x7e\x80-\xff]*)$/
const blank = /[\t ]/

/**
 * Returns the value of the only Host header, in lower case. Undefined if any line is malformed, since servers may skip
 * it or stop there.
 */
function onlyHost(head: string): string | undefined {
  const fields = head
    .split('\r\n')
    .slice(0, -2)
    .map((line) => fieldForm.exec(line))
  if (fields.includes(null)) return undefined
  const hosts = fields.filter((field) => field?.[1]?.toLowerCase() === 'host')
  const words = hosts.flatMap((field) => field?.[2]?.split(blank) ?? [])
  const [host, ...others] = words.filter((word) => word !== '')
  return hosts.length === 1 && others.length === 0 ? host?.toLowerCase() : undefined
}

export function withoutPort(host: string): string {
  return host.replace(/:\d{1,5}$/, '')
}
