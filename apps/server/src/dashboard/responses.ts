import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'

/** Headers of every response of the dashboard. */
export const baseHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const

/** Policy of responses that are never pages: even opened directly, nothing in them runs. */
export const inertPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

export function pagePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    // The terminal sets colours by style attributes. The pages insert no HTML, so attributes cannot be injected.
    "style-src-attr 'unsafe-inline'",
    "connect-src 'self'",
    "img-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string | string[]> = {},
): void {
  sendInert(res, status, {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
  }).end(JSON.stringify(body))
}

export function sendNothing(
  res: ServerResponse,
  headers: Record<string, string | string[]> = {},
): void {
  sendInert(res, 204, { ...headers, 'Cache-Control': 'no-store' }).end()
}

/** Writes the head of a response that is data, never a page. */
export function sendInert(
  res: ServerResponse,
  status: number,
  headers: Record<string, string | string[]>,
): ServerResponse {
  return res.writeHead(status, {
    ...headers,
    ...baseHeaders,
    'Content-Security-Policy': inertPolicy,
  })
}

export const statusOfKind = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  exhausted: 429,
  timeout: 504,
  unavailable: 503,
  internal: 500,
} as const satisfies Record<FaultKind, number>

export function sendFault(res: ServerResponse, thrown: unknown): void {
  const { kind, message } = Fault.from(thrown)
  if (res.headersSent) return void res.destroy()
  sendJson(res, statusOfKind[kind], { code: statusOfKind[kind], message })
}

/** Reads a small JSON body. */
export async function readJson(req: IncomingMessage, maxBytes: number): Promise<unknown> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of req) {
    size += piece.length
    if (size > maxBytes) {
      throw new Fault('invalid', 'body_too_large', `The body is larger than ${maxBytes} bytes`)
    }
    pieces.push(piece)
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'))
  } catch (cause) {
    throw new Fault('invalid', 'body_not_json', 'The body is not JSON', { cause })
  }
}
