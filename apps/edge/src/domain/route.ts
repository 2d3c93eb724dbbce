/**
 * Finds the sandbox and port of a request from its host name or its routing headers.
 *
 * Threats: parts of the system could read a request differently: host against headers, a repeated header, or an absolute
 * target that contradicts Host. The request is read once here, and that reading is forwarded. A page on a domain of
 * someone else that resolves to this server could speak for a sandbox, so a server with a domain answers for no other.
 */
import { isIP } from 'node:net'
import { envdPort } from './internal-path.ts'
import { isSignedFile, parseSignedFile } from './signed-file.ts'
import type { SignedFile } from './signed-file.ts'

/** The part of a request head that routing needs. `headers` has lower-case names, as in node:http. */
export interface RequestHead {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface Target {
  readonly sandboxId: string
  /** May be out of range; such a port counts as closed. */
  readonly port: number
  /** Host header to forward. */
  readonly authority: string
  /** Original Host header, if another one is forwarded. */
  readonly maskedAuthority?: string
  /** Request target in origin form, with the query. */
  readonly path: string
  /** True if the sandbox serves TLS on this port. */
  readonly usesTls?: boolean
  /** True if a header or signature names the sandbox, on a host shared with the platform API or other sandboxes. */
  readonly isOnSharedHost: boolean
}

export type Route =
  | { readonly kind: 'target'; readonly target: Target }
  /** The sandbox is found by the signature. */
  | {
      readonly kind: 'signed'
      readonly file: SignedFile
      readonly target: Omit<Target, 'sandboxId'>
    }
  | { readonly kind: 'refused'; readonly message: string }

/** `domain` is the server's own, without a port. Undefined: host names may have any domain. */
export function routeOf(head: RequestHead, domain?: string): Route {
  const line = readTarget(head)
  if (!line) return refused('The request target must be a path or an absolute http URL')
  const host = hostName(line.authority)
  const isShared = routesByHeader(host, domain)
  const hasHeader = hasRoutingHeader(head)
  if (isShared && !hasHeader && isSignedFile(line.path)) return signedRoute(head, line)
  const label = isShared && hasHeader ? headerLabel(head) : hostLabel(host, domain)
  if ('message' in label) return refused(label.message)
  if (!/^[a-z0-9]{1,63}$/.test(label.id)) {
    return refused('The sandbox ID must consist of lower-case letters and digits')
  }
  if (!/^[0-9]{1,10}$/.test(label.port)) return refused('The sandbox port must be a number')
  const sandbox = { sandboxId: label.id, port: Number(label.port) }
  return { kind: 'target', target: { ...line, ...sandbox, isOnSharedHost: isShared && hasHeader } }
}

/** Distinguishes sandbox traffic from platform requests on a shared port. */
export function isSandboxTraffic(head: RequestHead, domain?: string): boolean {
  const line = readTarget(head)
  const host = hostName(line?.authority ?? '')
  if (/^[0-9]+-[^.]+\./.test(host)) return true
  return routesByHeader(host, domain) && (hasRoutingHeader(head) || isSignedFile(line?.path ?? ''))
}

function signedRoute(head: RequestHead, line: { authority: string; path: string }): Route {
  const intended = head.headers['access-control-request-method']?.toString()
  const file = parseSignedFile(line.path, { method: head.method, intended })
  if (!file)
    return refused(
      'The query of this signed URL is invalid: a parameter is repeated or wrongly encoded',
    )
  return { kind: 'signed', file, target: { ...line, port: envdPort, isOnSharedHost: true } }
}

interface Label {
  readonly id: string
  readonly port: string
}

interface RouteError {
  readonly message: string
}

const idHeaders = ['svc-sandbox-id', 'e2b-sandbox-id'] as const
const portHeaders = ['svc-sandbox-port', 'e2b-sandbox-port'] as const

function hasRoutingHeader(head: RequestHead): boolean {
  return [...idHeaders, ...portHeaders].some((name) => head.headers[name] !== undefined)
}

/** False for hosts of a single sandbox, so that headers cannot redirect a page to another sandbox. */
function routesByHeader(host: string, domain: string | undefined): boolean {
  if (host === 'localhost' || isIP(host) !== 0) return true
  const [first, rest] = splitOnce(host, '.')
  if (domain === undefined) return first === 'sandbox' && rest !== undefined
  if (host === domain || (first === 'api' && rest === domain)) return true
  return first === 'sandbox' && isServed(rest, domain)
}

/** True for the domain of this server and for localhost, which always means this machine. */
function isServed(name: string | undefined, domain: string): boolean {
  return name === domain || name === 'localhost'
}

function headerLabel(head: RequestHead): Label | RouteError {
  const ids = valuesOf(head, idHeaders)
  const ports = valuesOf(head, portHeaders)
  const [id] = ids
  const [port] = ports
  if (id === undefined) return { message: 'The header Svc-Sandbox-Id is missing' }
  if (port === undefined) {
    return { message: `The header Svc-Sandbox-Port is missing (envd listens on 49983)` }
  }
  if (ids.length > 1 || ports.length > 1) {
    return { message: 'The Svc-Sandbox-* and E2b-Sandbox-* headers contradict each other' }
  }
  return { id, port }
}

/** Returns the distinct values of these headers. */
function valuesOf(head: RequestHead, names: readonly string[]): string[] {
  const values = names.flatMap((name) => head.headers[name] ?? [])
  return [...new Set(values)]
}

function hostLabel(host: string, domain: string | undefined): Label | RouteError {
  const [first, rest] = splitOnce(host, '.')
  const [port, id] = first.split('-')
  if (rest === undefined || isIP(host) !== 0 || port === undefined || id === undefined) {
    return {
      message:
        'The request names no sandbox. Use the headers Svc-Sandbox-Id and Svc-Sandbox-Port, ' +
        'or a host name of the form {port}-{sandboxID}.{domain}',
    }
  }
  if (domain !== undefined && !isServed(rest, domain)) {
    return { message: `This server has sandboxes under the domain ${domain}, not under ${rest}` }
  }
  return { id, port }
}

/** The authority of an absolute target overrides Host (RFC 9112, 3.2.2). */
function readTarget(head: RequestHead): { authority: string; path: string } | undefined {
  const { url = '' } = head
  const host = head.headers['host']
  const authority = typeof host === 'string' ? host : ''
  if (url.startsWith('/') || (url === '*' && head.method === 'OPTIONS')) {
    return { authority, path: url }
  }
  const absolute = /^https?:\/\/([^/?#@\\]+)([/?].*)?$/is.exec(url)
  if (!absolute?.[1]) return undefined
  const path = absolute[2] ?? '/'
  return { authority: absolute[1], path: path.startsWith('/') ? path : `/${path}` }
}

function hostName(authority: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(authority)
  const name = bracketed?.[1] ?? splitOnce(authority, ':')[0]
  return name.toLowerCase()
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function refused(message: string): Route {
  return { kind: 'refused', message }
}
