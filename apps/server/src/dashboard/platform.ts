/** Forwards requests of the pages to the platform API, with the API key of the session. */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { operations } from '@atoll/contracts/operations'
import { Fault } from '@atoll/kit/fault'
import { sendInert, sendJson } from './responses.ts'
import { bodyHeaders, readBounded } from './upstream.ts'
import type { Upstream } from './upstream.ts'

export const platformPrefix = '/bff/api'

const maxAnswerBytes = 32 * 2 ** 20
const passedHeaders = ['x-next-token', 'x-total-matches', 'x-total-running', 'retry-after']

/** Only operations of a team are forwarded: no pages, no operator's or user's operations. */
const forwarded = operations
  .filter(({ auth }) => auth === 'team')
  .map(({ method, path }) => ({
    method,
    pattern: new RegExp(
      `^${path.replaceAll('.', String.raw`\.`).replaceAll(/\{\w+\}/g, '[^/]+')}$`,
    ),
  }))

export function isTeamOperation(method: string | undefined, path: string): boolean {
  return forwarded.some((operation) => operation.method === method && operation.pattern.test(path))
}

export async function forwardToPlatform(
  req: IncomingMessage,
  res: ServerResponse,
  parts: { readonly platform: Upstream; readonly apiKey: string; onKeyRefused(): Promise<void> },
): Promise<void> {
  const target = (req.url ?? '').slice(platformPrefix.length)
  requireTeamOperation(req.method, target)
  const type = req.headers['content-type']
  const reply = await parts.platform.send({
    method: req.method ?? 'GET',
    path: target,
    headers: {
      ...bodyHeaders(req.headers),
      ...(type && { 'content-type': type }),
      'x-api-key': parts.apiKey,
    },
    body: req,
  })
  const { status, headers, body } = await readReply(reply)
  if (status === 401) await parts.onKeyRefused()
  if (body === undefined) return void sendInert(res, status, headers).end()
  const tag = tagOf(status, body, headers)
  sendJson(res, status, body, { ...headers, [tagHeader]: tag })
}

/** Names the content of an answer, so that a live connection sends only answers that differ. */
export const tagHeader = 'X-Atoll-Tag'

/** Changes with the content of an answer, and with the number of all matches if it is a page of a list. */
export function tagOf(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): string {
  const text = `${status} ${headers['x-total-matches'] ?? ''} ${JSON.stringify(body)}`
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

export interface PlatformAnswer {
  readonly status: number
  readonly headers: Record<string, string>
  /** Undefined if the answer is empty. */
  readonly body: unknown
}

/** Reads from the platform API with the key of a session. */
export async function askPlatform(call: {
  readonly platform: Upstream
  readonly apiKey: string
  /** Path with the query. */
  readonly path: string
  readonly signal: AbortSignal
}): Promise<PlatformAnswer> {
  const { platform, apiKey, path, signal } = call
  requireTeamOperation('GET', path)
  const headers = { 'x-api-key': apiKey }
  return readReply(await platform.send({ method: 'GET', path, headers, signal }))
}

/** Changes something with the key of a session. */
export async function changePlatform(call: {
  readonly platform: Upstream
  readonly apiKey: string
  readonly method: string
  readonly path: string
  readonly body?: object
}): Promise<PlatformAnswer> {
  const { platform, apiKey, method, path } = call
  requireTeamOperation(method, path)
  const body = call.body && JSON.stringify(call.body)
  const headers = { 'x-api-key': apiKey, ...(body && { 'content-type': 'application/json' }) }
  return readReply(await platform.send({ method, path, headers, body }))
}

async function readReply(reply: IncomingMessage): Promise<PlatformAnswer> {
  const text = await readBounded(reply, maxAnswerBytes)
  const headers = Object.fromEntries(
    passedHeaders.flatMap((name) => {
      const value = reply.headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
  const body = text === '' ? undefined : withoutTokens(JSON.parse(text))
  return { status: reply.statusCode ?? 502, headers, body }
}

function requireTeamOperation(method: string | undefined, target: string): void {
  if (isTeamOperation(method, target.split('?', 1)[0] ?? '')) return
  throw new Fault('not_found', 'no_operation', 'The platform API has no such operation for a team')
}

const tokenFields: ReadonlySet<string> = new Set(['envdAccessToken', 'trafficAccessToken'])

/** Removes the tokens of sandboxes: scripts in the browser never see them. */
export function withoutTokens(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(withoutTokens)
  if (typeof body !== 'object' || body === null) return body
  return Object.fromEntries(
    Object.entries(body)
      .filter(([name]) => !tokenFields.has(name))
      .map(([name, value]) => [name, withoutTokens(value)]),
  )
}
