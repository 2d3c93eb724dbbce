import { Fault } from '@atoll/kit/fault'
import { faultFromReply, faultFromSocket } from '../http-fault.ts'

export interface PlatformOptions {
  /** Base URL of the platform API, such as `http://localhost:3000`. */
  readonly url: string
  readonly apiKey?: string | undefined
  /** Used if there is no API key. */
  readonly accessToken?: string | undefined
  /** Sent only with operations of operators. */
  readonly adminToken?: string | undefined
  /** Timeout for every request. Default: depends on the operation. */
  readonly requestTimeoutMs?: number
}

export interface CallOptions {
  readonly signal?: AbortSignal
}

export interface PlatformRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Record<string, string | undefined>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
  /** Sends the operator's token, if there is one, instead of the key. */
  readonly isOperator?: boolean
  /** Timeout of this request if the default is too short. */
  readonly timeoutMs?: number
}

export interface PlatformReply {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

/** Long, because creating a sandbox may have to wait for a build. */
const defaultTimeoutMs = 120_000
/** Saving gigabytes of memory takes long. fetch itself gives up after 300 s. */
export const snapshotTimeoutMs = 295_000

/** Sends one request to the platform API. Every failure is a `Fault`: the server's own, or a connection error. */
export async function sendRequest(
  options: PlatformOptions,
  request: PlatformRequest,
): Promise<PlatformReply> {
  const url = toUrl(options.url, request)
  const limit = AbortSignal.timeout(
    options.requestTimeoutMs ?? request.timeoutMs ?? defaultTimeoutMs,
  )
  try {
    const response = await fetch(url, {
      method: request.method,
      headers: headersOf(options, request),
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal: request.signal ? AbortSignal.any([request.signal, limit]) : limit,
    })
    const body = parseBody(await response.text())
    if (!response.ok) throw faultFromReply(response.status, body)
    return { status: response.status, body, headers: response.headers }
  } catch (thrown) {
    if (thrown instanceof Fault) throw thrown
    request.signal?.throwIfAborted()
    if (limit.aborted) {
      throw new Fault(
        'timeout',
        'no_answer',
        `No response from ${options.url} in time. Check that the server is healthy, or raise the request timeout.`,
        { cause: thrown },
      )
    }
    throw faultFromSocket(thrown, options.url) ?? connectionBroken(options.url, thrown)
  }
}

function toUrl(base: string, request: PlatformRequest): URL {
  const url = new URL(base.replace(/\/+$/, '') + request.path)
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, value)
  }
  return url
}

function headersOf(options: PlatformOptions, request: PlatformRequest): Record<string, string> {
  return {
    accept: 'application/json',
    ...(request.body !== undefined && { 'content-type': 'application/json' }),
    ...authHeaders(options, request),
  }
}

function authHeaders(
  { apiKey, accessToken, adminToken }: PlatformOptions,
  { isOperator = false }: PlatformRequest,
): Record<string, string> {
  if (isOperator && adminToken) return { 'x-admin-token': adminToken }
  if (apiKey) return { 'x-api-key': apiKey }
  return accessToken ? { authorization: `Bearer ${accessToken}` } : {}
}

/** Returns undefined for an empty body, and the text itself if it is not JSON (a proxy's error page). */
function parseBody(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function connectionBroken(url: string, thrown: unknown): Fault {
  const message = `The connection to ${url} failed: ${innermostMessage(thrown)}`
  return new Fault('unavailable', 'broken_exchange', message, { cause: thrown })
}

/** The error of fetch says only "fetch failed"; the reason is in its causes. */
function innermostMessage(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.cause === undefined ? thrown.message : innermostMessage(thrown.cause)
}
