/** Forwards requests of the pages to the platform API, with the API key of the session. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { operations } from '@atoll/contracts/operations'
import { Fault } from '@atoll/kit/fault'
import { sendInert, sendJson } from './responses.ts'
import { bodyHeaders, readBounded } from './upstream.ts'
import type { Upstream } from './upstream.ts'

export const platformPrefix = '/bff/api'

const maxAnswerBytes = 32 * 2 ** 20
const passedHeaders = ['x-next-token', 'x-total-running', 'retry-after']

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
  if (!isTeamOperation(req.method, target.split('?', 1)[0] ?? '')) {
    throw new Fault(
      'not_found',
      'no_operation',
      'The platform API has no such operation for a team',
    )
  }
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
  const status = reply.statusCode ?? 502
  if (status === 401) await parts.onKeyRefused()
  const text = await readBounded(reply, maxAnswerBytes)
  const headers = Object.fromEntries(
    passedHeaders.flatMap((name) => {
      const value = reply.headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
  if (text === '') return void sendInert(res, status, headers).end()
  sendJson(res, status, withoutTokens(JSON.parse(text)), headers)
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
