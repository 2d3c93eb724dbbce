import { toDnsName } from '../dns-name.ts'
import { withoutPort } from '../sniffing/request-head.ts'

/**
 * Decides which requests on a terminated connection are forwarded with the headers of a rule.
 *
 * Threats: a connection is for one server name, and its secrets are for that name only. The server may also serve other
 * names, so each request must carry exactly this name wherever it carries one. TRACE is refused because the server
 * would echo the secret to the sandbox.
 */
export interface RequestHead {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly rawHeaders: readonly string[]
}

/** Response that the proxy sends instead of forwarding the request. */
export interface Refusal {
  readonly status: 400 | 405 | 421 | 501 | 502
  readonly message: string
}

export function findRefusal(request: RequestHead, name: string): Refusal | undefined {
  const { method = '', url = '' } = request
  if (method === 'CONNECT')
    return { status: 400, message: 'CONNECT is not supported. Connect to the server directly.' }
  if (method === 'TRACE')
    return { status: 405, message: 'TRACE is not allowed on a connection with header rules.' }
  const hosts = headerValues(request, 'host')
  const target = parseTarget(url)
  if (!target || hosts.length !== 1)
    return {
      status: 400,
      message: 'Send exactly one Host header, and a path or an http(s) URL as request target.',
    }
  const hostsNamed = [...hosts, ...(target.authority === undefined ? [] : [target.authority])]
  if (hostsNamed.some((host) => toDnsName(withoutPort(host)) !== name)) {
    return {
      status: 421,
      message: `This connection is for ${name} only. Open a new connection for another host.`,
    }
  }
  const codings = headerValues(request, 'transfer-encoding')
  if (codings.length > 1 || (codings[0] ?? 'chunked').toLowerCase() !== 'chunked') {
    return {
      status: 501,
      message: 'Unsupported transfer coding. Use chunked, or send a Content-Length.',
    }
  }
  return undefined
}

/** Path in origin form, as servers that are not proxies expect it (RFC 9112, 3.2.1). */
export function originFormPath({ url = '' }: RequestHead): string {
  return parseTarget(url)?.path ?? '/'
}

/** `name` must be in lower case. */
export function headerValues({ rawHeaders }: RequestHead, name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name)
}

const absoluteForm = /^https?:\/\/([^/?#]+)(.*)$/i

function parseTarget(
  url: string,
): { readonly authority?: string; readonly path: string } | undefined {
  if (url.startsWith('/') || url === '*') return { path: url }
  const [, authority, rest = ''] = absoluteForm.exec(url) ?? []
  if (authority === undefined) return undefined
  return { authority, path: rest.startsWith('/') ? rest : `/${rest}` }
}
