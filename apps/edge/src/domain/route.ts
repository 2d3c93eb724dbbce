/**
 * Which sandbox and port a request is for, from its host name or its routing headers.
 *
 * Threats: a request that two parts read differently (host against headers, one header given twice, a target
 * in absolute form that contradicts Host). One reading is made here, and it is the one that is forwarded.
 */
import { isIP } from 'node:net'
import { envdPort } from './internal-path.ts'
import { isSignedFile, parseSignedFile } from './signed-file.ts'
import type { SignedFile } from './signed-file.ts'

/** What of a request's head decides its way. `headers` has lower-case names, as in node:http. */
export interface RequestHead {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface Target {
  readonly sandboxId: string
  /** May be out of range: such a port is simply closed. */
  readonly port: number
  /** The Host to forward. */
  readonly authority: string
  /** The Host that came, where another is forwarded. */
  readonly maskedAuthority?: string
  /** The target in origin form, query included. */
  readonly path: string
  /** Whether the sandbox speaks TLS there. */
  readonly isSecure?: boolean
  /** Whether a header or a signature names the sandbox, on a host that also serves the platform API or other sandboxes. */
  readonly isOnSharedHost: boolean
}

export type Route =
  | { readonly kind: 'target'; readonly target: Target }
  /** For the sandbox that signed, once it is found. */
  | {
      readonly kind: 'signed'
      readonly file: SignedFile
      readonly target: Omit<Target, 'sandboxId'>
    }
  | { readonly kind: 'refused'; readonly message: string }

export function routeOf(head: RequestHead): Route {
  const line = readTarget(head)
  if (!line) return refused('The request target must be a path')
  const host = hostName(line.authority)
  const isShared = routesByHeader(host)
  const hasHeader = hasRoutingHeader(head)
  if (isShared && !hasHeader && isSignedFile(line.path)) return signedRoute(head, line)
  const label = isShared && hasHeader ? headerLabel(head) : hostLabel(host)
  if ('message' in label) return refused(label.message)
  if (!/^[a-z0-9]{1,63}$/.test(label.id)) {
    return refused('The sandbox id must be made of lower-case letters and digits')
  }
  if (!/^[0-9]{1,10}$/.test(label.port)) return refused('The sandbox port must be a number')
  const sandbox = { sandboxId: label.id, port: Number(label.port) }
  return { kind: 'target', target: { ...line, ...sandbox, isOnSharedHost: isShared && hasHeader } }
}

/** On a port shared with the platform API: whether a request is sandbox traffic. */
export function isSandboxTraffic(head: RequestHead): boolean {
  const line = readTarget(head)
  const host = hostName(line?.authority ?? '')
  if (/^[0-9]+-[^.]+\./.test(host)) return true
  return routesByHeader(host) && (hasRoutingHeader(head) || isSignedFile(line?.path ?? ''))
}

function signedRoute(head: RequestHead, line: { authority: string; path: string }): Route {
  const intended = head.headers['access-control-request-method']?.toString()
  const file = parseSignedFile(line.path, { method: head.method, intended })
  if (!file) return refused('The query of this signed URL cannot be read')
  return { kind: 'signed', file, target: { ...line, port: envdPort, isOnSharedHost: true } }
}

interface Label {
  readonly id: string
  readonly port: string
}

interface Mistake {
  readonly message: string
}

const idHeaders = ['svc-sandbox-id', 'e2b-sandbox-id'] as const
const portHeaders = ['svc-sandbox-port', 'e2b-sandbox-port'] as const

function hasRoutingHeader(head: RequestHead): boolean {
  return [...idHeaders, ...portHeaders].some((name) => head.headers[name] !== undefined)
}

/** Elsewhere the host name says it all, and a page cannot be steered to another sandbox by headers. */
function routesByHeader(host: string): boolean {
  return host === 'localhost' || host.startsWith('sandbox.') || isIP(host) !== 0
}

function headerLabel(head: RequestHead): Label | Mistake {
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

/** The different values given under any of the names. */
function valuesOf(head: RequestHead, names: readonly string[]): string[] {
  const values = names.flatMap((name) => head.headers[name] ?? [])
  return [...new Set(values)]
}

function hostLabel(host: string): Label | Mistake {
  const [first, rest] = splitOnce(host, '.')
  const [port, id] = first.split('-')
  if (rest === undefined || isIP(host) !== 0 || port === undefined || id === undefined) {
    return {
      message:
        'Name the sandbox: with the headers Svc-Sandbox-Id and Svc-Sandbox-Port, ' +
        'or by a host name of the form {port}-{sandboxID}.{domain}',
    }
  }
  return { id, port }
}

/** The authority of an absolute target goes before Host (RFC 9112, 3.2.2). */
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
