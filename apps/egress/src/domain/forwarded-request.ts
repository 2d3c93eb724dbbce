import { toDnsName } from './dns-name.ts'
import { withoutPort } from './request-head.ts'

/**
 * Which requests of a connection are passed on with the headers of a rule.
 *
 * Threats: a connection is for one name, and its secrets are for that name only. A server may answer for others too, so
 * each request must say the same name, once, wherever it can say one. A server that sends back what it was sent (TRACE)
 * would tell the secret.
 */
export interface RequestHead {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly rawHeaders: readonly string[]
}

/** What it is answered with instead of being passed on. */
export interface Refusal {
  readonly status: 400 | 405 | 421 | 501 | 502
  readonly message: string
}

export function objectionTo(request: RequestHead, name: string): Refusal | undefined {
  const { method = '', url = '' } = request
  if (method === 'CONNECT') return { status: 400, message: 'This is no proxy' }
  if (method === 'TRACE') return { status: 405, message: 'TRACE is not passed on' }
  const hosts = valuesOf(request, 'host')
  const target = targetOf(url)
  if (!target || hosts.length !== 1) return { status: 400, message: 'The request is not clear' }
  const named = [...hosts, ...(target.authority === undefined ? [] : [target.authority])]
  if (named.some((host) => toDnsName(withoutPort(host)) !== name)) {
    return { status: 421, message: `This connection is for ${name} only` }
  }
  const codings = valuesOf(request, 'transfer-encoding')
  if (codings.length > 1 || (codings[0] ?? 'chunked').toLowerCase() !== 'chunked') {
    return { status: 501, message: 'The only transfer coding spoken here is chunked' }
  }
  return undefined
}

/** In the form in which servers are asked that are no proxies (RFC 9112, 3.2.1). */
export function pathOf({ url = '' }: RequestHead): string {
  return targetOf(url)?.path ?? '/'
}

/** `name` in lower case. */
export function valuesOf({ rawHeaders }: RequestHead, name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name)
}

const absoluteForm = /^https?:\/\/([^/?#]+)(.*)$/i

function targetOf(url: string): { readonly authority?: string; readonly path: string } | undefined {
  if (url.startsWith('/') || url === '*') return { path: url }
  const [, authority, rest = ''] = absoluteForm.exec(url) ?? []
  if (authority === undefined) return undefined
  return { authority, path: rest.startsWith('/') ? rest : `/${rest}` }
}
