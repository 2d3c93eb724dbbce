import type { ProcessInfo } from '../model/process.ts'
import { readsOf } from './reads.ts'
import type { ReadAnswer, Reads } from './reads.ts'

/** A request that the server answered with an error, or did not answer. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  /** 0 if there was no answer. */
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export interface Reply<Body> {
  readonly body: Body
  readonly headers: Headers
}

/** Paths whose 401 says nothing about the session of the team: sign-in, the operator's session and share links. */
const ownAccess = /^\/bff\/(session$|operator\/|share\/)/

let onSignedOut = () => {}

/** `listener` is called when the server says that the session has ended. */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener
}

export function signedOut(): void {
  onSignedOut()
}

export async function send(
  method: string,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  let response: Response
  try {
    response = await fetch(path, { method, credentials: 'same-origin', ...init })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new RequestError(0, 'The server does not answer. Is it running?')
  }
  if (response.ok) return response
  const text = await response.text()
  const error = new RequestError(response.status, messageOf(text, response.status))
  if (response.status === 401 && !ownAccess.test(path)) onSignedOut()
  throw error
}

function messageOf(text: string, status: number): string {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null && 'message' in body) return String(body.message)
  } catch {
    // not JSON: a proxy in between
  }
  return `The server answered with HTTP status ${status}`
}

async function sendJson<Body>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Reply<Body>> {
  const reads = method === 'GET' ? readsOf(signal) : undefined
  const known = reads?.known.get(path)
  if (reads && known) return takeKnown(reads, path, known)
  const response = await send(method, path, {
    ...(body !== undefined && {
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json' },
    }),
    ...(signal && { signal }),
  })
  const text = await response.text()
  const { headers, status } = response
  const parsed = text === '' ? undefined : JSON.parse(text)
  const tag = headers.get('x-atoll-tag')
  if (tag)
    reads?.used.set(path, { status, headers: Object.fromEntries(headers), body: parsed, tag })
  return { body: parsed, headers }
}

/** Takes an answer that the live connection has sent. */
function takeKnown<Body>(reads: Reads, path: string, known: ReadAnswer): Reply<Body> {
  const { status, headers } = known
  if (status >= 400) throw new RequestError(status, messageOf(JSON.stringify(known.body), status))
  reads.used.set(path, known)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the path fixes the type of the answer
  return { body: known.body as Body, headers: new Headers(headers) }
}

/** Calls the platform API. */
export async function api<Body = void>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Body> {
  return (await sendJson<Body>(method, `/bff/api${path}`, body, signal)).body
}

/** Calls a path of the dashboard's own server. */
export async function dashboardApi<Body = void>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Body> {
  return (await sendJson<Body>(method, `/bff${path}`, body, signal)).body
}

/** Reads the sandbox of a share link. The token replaces a session. */
export async function readShared<Body>(
  token: string,
  what: 'sandbox' | 'metrics' | 'logs',
  signal: AbortSignal,
): Promise<Body> {
  const headers = { 'X-Atoll-Share': token }
  return (await send('GET', `/bff/share/${what}`, { headers, signal })).json()
}

/** Calls envd of a running sandbox. */
export function envd<Body = void>(
  sandboxId: string,
  method: string,
  request: unknown,
): Promise<Body> {
  return dashboardApi<Body>(
    'POST',
    `/sandboxes/${encodeURIComponent(sandboxId)}/rpc/${method}`,
    request,
  )
}

/** Lists the processes of a running sandbox. */
export function listProcesses(
  sandboxId: string,
  signal: AbortSignal,
): Promise<{ readonly processes?: ProcessInfo[] }> {
  const path = `/sandboxes/${encodeURIComponent(sandboxId)}/processes`
  return dashboardApi('GET', path, undefined, signal)
}

const maxPages = 200

export interface Pages<Item> {
  readonly items: Item[]
  /** Number of items on all pages, also on pages that were not read. */
  readonly total: number
}

interface PagesOptions<Item> {
  readonly signal?: AbortSignal
  /** Enough items: later pages are not read. */
  readonly enough?: number
  /** Called with the items so far, so that the first rows appear at once. */
  readonly onPage?: (pages: Pages<Item>) => void
}

/** Reads the pages of a list in their order. */
export async function listPages<Item>(
  path: string,
  { signal, enough = Infinity, onPage }: PagesOptions<Item>,
): Promise<Pages<Item>> {
  const items: Item[] = []
  let total = 0
  let next: string | null = ''
  for (let page = 0; next !== null && page < maxPages && items.length < enough; page += 1) {
    const join: string = path.includes('?') ? '&' : '?'
    const token: string = next ? `${join}nextToken=${encodeURIComponent(next)}` : ''
    const reply: Reply<Item[]> = await sendJson<Item[]>(
      'GET',
      `/bff/api${path}${token}`,
      undefined,
      signal,
    )
    items.push(...reply.body)
    next = reply.headers.get('x-next-token')
    total = Number(reply.headers.get('x-total-matches') ?? items.length)
    if (next !== null) onPage?.({ items: [...items], total })
  }
  return { items, total: next === null ? items.length : Math.max(total, items.length) }
}

/** Reads all pages of a list. */
export async function listAll<Item>(
  path: string,
  options: { readonly signal?: AbortSignal; readonly onPage?: (items: Item[]) => void } = {},
): Promise<Item[]> {
  const { signal, onPage } = options
  const pages = await listPages<Item>(path, {
    ...(signal && { signal }),
    ...(onPage && { onPage: ({ items }) => onPage(items) }),
  })
  return pages.items
}
