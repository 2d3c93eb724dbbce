import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import { exchange } from './request.ts'
import type { PlatformOptions, PlatformReply, PlatformRequest } from './request.ts'

/** What the schema knows of a reply; a fault when it lacks what the schema demands. */
export function readReply<T>(schema: z.ZodType<T>, { body }: PlatformReply): T {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const message = `The server sent a reply this version does not understand: ${z.prettifyError(parsed.error)}`
  throw new Fault('internal', 'reply_not_understood', message)
}

/** A list that comes in pages, each asked for only when the caller comes to it. */
export async function* readPages<T>(
  item: z.ZodType<T>,
  options: PlatformOptions,
  request: Omit<PlatformRequest, 'method' | 'body'>,
): AsyncGenerator<T> {
  let nextToken: string | undefined
  do {
    const query = { ...request.query, nextToken }
    const reply = await exchange(options, { ...request, method: 'GET', query })
    yield* readReply(z.array(item), reply)
    nextToken = reply.headers.get('x-next-token') || undefined
  } while (nextToken)
}
