import type { IncomingMessage } from 'node:http'
import { Fault } from '@atoll/kit/fault'

/** Throws an `invalid` fault if the body is too large or not JSON. */
export async function readJson(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length
    if (size > limitBytes) break
    chunks.push(chunk)
  }
  if (size > limitBytes) {
    request.resume() // discard the rest, so that the connection can be reused
    refuse(`The request body exceeds the limit of ${limitBytes} bytes`)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch (cause) {
    return refuse('The request body is not valid JSON', cause)
  }
}

function refuse(message: string, cause?: unknown): never {
  throw new Fault('invalid', 'bad_body', message, { cause })
}
