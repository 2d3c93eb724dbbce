/**
 * Parses the head of an HTTP/1.1 response (RFC 9112, 4 and 5).
 *
 * Threats: the server may be hostile. Malformed heads and ambiguous body framing are rejected.
 */
import { createChunkedBody, createCountedBody } from '@atoll/kit/http/body-framing'
import type { BodyFraming } from '@atoll/kit/http/body-framing'

export interface ResponseHead {
  readonly status: number
  readonly headers: Headers
}

/** `text` is everything before the empty line. Returns undefined if the head is malformed. */
export function parseHead(text: string): ResponseHead | undefined {
  const [first = '', ...lines] = text.split('\r\n')
  const status = /^HTTP\/1\.[01] ([1-5]\d\d)(?: |$)/.exec(first)?.[1]
  if (status === undefined) return undefined
  const headers = new Headers()
  for (const line of lines) {
    const [, name, value] = headerLine.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    headers.append(name, value)
  }
  return { status: Number(status), headers }
}

/** Token, colon, and a value without control characters. */
const headerLine =
  /^([\w!#$%&'*+.^`|~-]+):[ \t]*((?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)[ \t]*$/

/** Returns undefined if the framing is ambiguous or not supported. */
export function framingOf(head: ResponseHead): BodyFraming | undefined {
  const coding = head.headers.get('transfer-encoding')
  const length = head.headers.get('content-length')
  if (isOpenEnded(head)) return createCountedBody(Infinity)
  if (length === null) return coding?.toLowerCase() === 'chunked' ? createChunkedBody() : undefined
  return coding === null && /^\d{1,15}$/.test(length)
    ? createCountedBody(Number(length))
    : undefined
}

/** Whether the body ends when the connection closes. */
export function isOpenEnded({ headers }: ResponseHead): boolean {
  return !headers.has('transfer-encoding') && !headers.has('content-length')
}
