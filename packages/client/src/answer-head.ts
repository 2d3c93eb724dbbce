/**
 * The head of an HTTP/1.1 answer (RFC 9112, 4 and 5).
 *
 * Threats: whoever answers may be hostile. What is not clearly a head is none, and how the body is framed must be said in
 * one way alone.
 */
import { createChunkedBody, createCountedBody } from '@atoll/kit/body-framing'
import type { BodyFraming } from '@atoll/kit/body-framing'

export interface AnswerHead {
  readonly status: number
  readonly headers: Headers
}

/** `text` is all before the empty line. Undefined when it is no head. */
export function parseHead(text: string): AnswerHead | undefined {
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

/** A token, a colon, and whatever is no control character. */
const headerLine =
  /^([\w!#$%&'*+.^`|~-]+):[ \t]*((?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)[ \t]*$/

/** Undefined when its end cannot be told. */
export function framingOf(head: AnswerHead): BodyFraming | undefined {
  const coding = head.headers.get('transfer-encoding')
  const length = head.headers.get('content-length')
  if (isOpenEnded(head)) return createCountedBody(Infinity)
  if (length === null) return coding?.toLowerCase() === 'chunked' ? createChunkedBody() : undefined
  return coding === null && /^\d{1,15}$/.test(length)
    ? createCountedBody(Number(length))
    : undefined
}

/** Whether the body ends with the connection. */
export function isOpenEnded({ headers }: AnswerHead): boolean {
  return !headers.has('transfer-encoding') && !headers.has('content-length')
}
