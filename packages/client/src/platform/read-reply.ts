import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { sendRequest } from './request.ts'
import type { PlatformOptions, PlatformReply, PlatformRequest } from './request.ts'

/** Validates a reply and drops unknown properties. Throws a fault if the reply does not match the schema. */
export function readReply<T>(schema: z.ZodType<T>, { body }: PlatformReply): T {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const message = `The server's reply does not match this client's version: ${z.prettifyError(parsed.error)}`
  throw new Fault('internal', 'reply_not_understood', message)
}

/** Iterates over a paged list. Requests a page only when the caller reaches it. */
export async function* readPages<T>(
  item: z.ZodType<T>,
  options: PlatformOptions,
  request: Omit<PlatformRequest, 'method' | 'body'>,
): AsyncGenerator<T> {
  let nextToken: string | undefined
  do {
    const query = { ...request.query, nextToken }
    const reply = await sendRequest(options, { ...request, method: 'GET', query })
    yield* readReply(z.array(item), reply)
    nextToken = reply.headers.get('x-next-token') || undefined
  } while (nextToken)
}
