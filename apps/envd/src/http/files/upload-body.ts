import type { IncomingMessage, ServerResponse } from 'node:http'
import { createGunzip } from 'node:zlib'
import { Fault } from '@atoll/kit/fault'
import { takeRawBody } from '@atoll/kit/http/raw-body'

/**
 * Returns the decompressed request body. A chunk is valid until the next is requested. Stopping early keeps the
 * connection open, so that a response can be sent.
 */
export function uploadBody(
  request: IncomingMessage,
  response: ServerResponse,
): AsyncIterable<Buffer> {
  const coding = request.headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (coding === 'gzip' || coding === 'x-gzip') return decompress(request)
  if (coding === '' || coding === 'identity') {
    return takeRawBody(request, response)?.pieces ?? request.iterator({ destroyOnReturn: false })
  }
  throw new Fault(
    'invalid',
    'bad_encoding',
    `Content-Encoding '${coding}' is not supported. Use gzip or identity.`,
  )
}

/** Streams, so the decompressed size is bounded by the disk alone. */
async function* decompress(request: IncomingMessage): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: chunkBytes })
  const truncate = () => {
    if (!request.complete) gunzip.destroy(new Error('The client disconnected during the request'))
  }
  request.once('close', truncate)
  request.pipe(gunzip)
  try {
    for await (const chunk of gunzip) yield chunk
  } catch (cause) {
    if (!isGzipError(cause)) throw cause
    throw new Fault('invalid', 'bad_encoding', 'The request body is not valid gzip data', { cause })
  } finally {
    request.off('close', truncate)
    request.unpipe(gunzip)
    gunzip.destroy()
  }
}

const chunkBytes = 128 * 1024

function isGzipError(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && String(thrown.code).startsWith('Z_')
}
