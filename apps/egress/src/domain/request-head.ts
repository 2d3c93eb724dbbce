import { toDnsName } from './dns-name.ts'
import { more, none, type NameSearch } from './name-search.ts'

/**
 * The host of an HTTP/1 request (RFC 9112, 2 to 5).
 *
 * Threats: see named-stream.ts. Servers forgive different things, and each of them is a way to show us one host and the
 * server another: lines that end in one character or go on in the next, spaces before a colon, a second Host, a
 * target with a host of its own. None of these names.
 */
export function searchRequestHead(bytes: Buffer): NameSearch {
  const lineEnd = bytes.indexOf('\r\n')
  const line = bytes.toString('latin1', 0, lineEnd === -1 ? bytes.length : lineEnd)
  if (lineEnd === -1) return canBeginRequest(line) ? more : none

  const target = targetIn(line)
  const end = target && endOfHead(bytes)
  if (!target || end === 'never') return none
  if (end === undefined) return more

  const host = onlyHost(bytes.toString('latin1', lineEnd + 2, end))
  const isOther = target.authority !== undefined && target.authority !== host
  const name = host === undefined || isOther ? undefined : toDnsName(withoutPort(host))
  return name === undefined ? none : { kind: 'name', name }
}

const versions = ['HTTP/1.0', 'HTTP/1.1']
const methodBegin = /^[A-Za-z]{0,32}$/
const visible = /^[\x21-\x7e\x80-\xff]*$/

/** Whether a line without an end may become one of a request. Others than HTTP are not to wait for a whole line. */
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
  /** In lower case, where it has a host of its own. */
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

/** The host of CONNECT is another's, and what follows is no HTTP. */
function isMethod(word: string): boolean {
  return word !== '' && word.toUpperCase() !== 'CONNECT'
}

// A line end of one character, and a line that goes on in the next (obs-fold).
const untrusted = /\r[^\n]|[^\r]\n|\n[\t ]/

/** Behind the empty line. Undefined as long as that is missing, 'never' when the lines so far are not to be trusted. */
function endOfHead(bytes: Buffer): number | 'never' | undefined {
  const emptyLine = bytes.indexOf('\r\n\r\n')
  const end = emptyLine === -1 ? undefined : emptyLine + 4
  return untrusted.test(bytes.toString('latin1', 0, end)) ? 'never' : end
}

// No two parts in a row can take the same character, which keeps these linear.
const fieldForm = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t\x20-\x7e\x80-\xff]*)$/
const blank = /[\t ]/

/** In lower case. Undefined also when any line is no field: a server may leave it out, or stop there. */
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
