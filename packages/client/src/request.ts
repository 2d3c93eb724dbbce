import { Fault } from '@atoll/kit/fault'
import { faultFromReply, faultFromSocket } from './wire-fault.ts'

export interface PlatformOptions {
  /** The base of the platform API, such as `http://localhost:3000`. */
  readonly url: string
  readonly apiKey?: string | undefined
  /** Used when there is no API key. */
  readonly accessToken?: string | undefined
  /** How long any request may take; without it each has a limit that fits what is asked for. */
  readonly requestTimeoutMs?: number
}

export interface Call {
  readonly signal?: AbortSignal
}

export interface PlatformRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Record<string, string | undefined>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
  /** How long it may take, where that is longer than usual. */
  readonly limitMs?: number
}

export interface PlatformReply {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

/** Creating a sandbox may have to wait for a build, hence the length. */
const usualLimitMs = 120_000
/** Writing gigabytes of memory takes a while. Longer than 300 s fetch itself does not wait for an answer. */
export const savingLimitMs = 295_000

/** One exchange with the platform. Every failure is a `Fault`: the server's own, or one that says what went wrong on the way. */
export async function exchange(
  options: PlatformOptions,
  request: PlatformRequest,
): Promise<PlatformReply> {
  const url = toUrl(options.url, request)
  const limit = AbortSignal.timeout(options.requestTimeoutMs ?? request.limitMs ?? usualLimitMs)
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
      throw new Fault('timeout', 'no_answer', `No answer from ${options.url}`, { cause: thrown })
    }
    throw faultFromSocket(thrown, options.url) ?? brokenExchange(options.url, thrown)
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
    ...credentialOf(options),
  }
}

function credentialOf({ apiKey, accessToken }: PlatformOptions): Record<string, string> {
  if (apiKey) return { 'x-api-key': apiKey }
  return accessToken ? { authorization: `Bearer ${accessToken}` } : {}
}

/** Undefined for an empty body, the text itself where it is not JSON (a proxy's error page). */
function parseBody(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function brokenExchange(url: string, thrown: unknown): Fault {
  const message = `The exchange with ${url} broke off: ${innermostMessage(thrown)}`
  return new Fault('unavailable', 'broken_exchange', message, { cause: thrown })
}

/** fetch itself says no more than that it failed. */
function innermostMessage(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.cause === undefined ? thrown.message : innermostMessage(thrown.cause)
}
