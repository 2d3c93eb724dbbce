/** GET /files: sends a file or a range of it, compressed if the client asks for gzip. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip, gzipSync } from 'node:zlib'
import { Fault } from '@atoll/kit/fault'
import { parseAcceptEncoding } from '../../domain/files/accept-encoding.ts'
import type { Encoding } from '../../domain/files/accept-encoding.ts'
import { selectRange } from '../../domain/files/byte-range.ts'
import { allowsRange, evaluateConditions } from '../../domain/files/conditional-request.ts'
import { inlineDisposition } from '../../domain/files/content-disposition.ts'
import { mediaTypeOf } from '../../domain/files/media-type.ts'
import type { ReadableFile, RegularFiles } from '../../domain/files/regular-file.ts'
import { sniffMediaType } from '../../domain/files/sniff-media-type.ts'
import { sendError } from '../wire/responses.ts'
import { sendChunks } from '../wire/send-chunks.ts'

export async function handleDownload(
  request: IncomingMessage,
  response: ServerResponse,
  { files, path }: { readonly files: RegularFiles; readonly path: string },
): Promise<void> {
  await using file = await files.open(path)
  response.setHeader('vary', 'Accept-Encoding')
  const encoding = chooseEncoding(request)
  if (!encoding)
    return sendError(
      response,
      406,
      'No encoding in Accept-Encoding is supported. Accept gzip or identity.',
    )
  const type = mediaTypeOf(path)
  response.setHeader('content-disposition', inlineDisposition(basename(path)))
  if (encoding === 'gzip') {
    response.setHeader('content-type', type ?? 'application/octet-stream')
    await sendCompressed(request, response, file)
    return
  }
  response.setHeader('content-type', type ?? sniffMediaType(file.head))
  await sendAsIs(request, response, file)
}

/** Ranges and conditions refer to the uncompressed bytes, so they rule out gzip. */
function chooseEncoding({ headers }: IncomingMessage): Encoding | undefined {
  const { best, identity } = parseAcceptEncoding(headers['accept-encoding']?.toString())
  const needsExactBytes = exactBytesHeaders.some((name) => headers[name] !== undefined)
  if (!needsExactBytes) return best
  return identity ? 'identity' : undefined
}

const exactBytesHeaders = ['range', 'if-range', 'if-none-match', 'if-modified-since'] as const

async function sendCompressed(
  request: IncomingMessage,
  response: ServerResponse,
  file: ReadableFile,
): Promise<void> {
  response.writeHead(200, { 'content-encoding': 'gzip' })
  if (request.method === 'HEAD') return void response.end()
  const gzip = createGzip({ level: levelFor(file.head) })
  const sent = sendChunks(gzip, file.read(0, file.size)).catch((error: unknown) => {
    gzip.destroy()
    throw error
  })
  await Promise.all([sent, pipeline(gzip, response)])
}

/** Stores incompressible data such as images and archives uncompressed, because compressing it only costs CPU. */
function levelFor(head: Uint8Array): number {
  const { length } = gzipSync(head, { level: constants.Z_BEST_SPEED })
  return length < head.length * 0.9 ? constants.Z_BEST_SPEED : constants.Z_NO_COMPRESSION
}

async function sendAsIs(
  request: IncomingMessage,
  response: ServerResponse,
  file: ReadableFile,
): Promise<void> {
  const { size, modifiedMs } = file
  const conditions = conditionsOf(request)
  response.setHeader('last-modified', new Date(modifiedMs).toUTCString())
  const result = evaluateConditions(conditions, modifiedMs)
  if (result === 'not_modified') {
    response.removeHeader('content-type')
    return void response.writeHead(304).end()
  }
  if (result === 'failed')
    return sendError(response, 412, 'The file does not meet If-Match or If-Unmodified-Since')
  if (size === undefined) {
    response.writeHead(200)
    if (request.method === 'HEAD') return void response.end()
    return sendChunks(response, file.read(0))
  }
  response.setHeader('accept-ranges', 'bytes')
  const wanted = allowsRange(conditions, modifiedMs) ? request.headers.range : undefined
  const range = selectRange(wanted, size)
  if (range === 'unsatisfiable') {
    response.setHeader('content-range', `bytes */${size}`)
    return sendError(
      response,
      416,
      `Range '${wanted}' is outside the file, which has ${size} bytes`,
    )
  }
  const { start, length } = range ?? { start: 0, length: size }
  if (range) response.setHeader('content-range', `bytes ${start}-${start + length - 1}/${size}`)
  response.writeHead(range ? 206 : 200, { 'content-length': length })
  if (request.method === 'HEAD' || length === 0) return void response.end()
  await sendChunks(response, requireLength(file.read(start, length), length))
}

function conditionsOf({ headers }: IncomingMessage) {
  return {
    ifMatch: headers['if-match'],
    ifNoneMatch: headers['if-none-match'],
    ifModifiedSince: headers['if-modified-since'],
    ifUnmodifiedSince: headers['if-unmodified-since'],
    ifRange: headers['if-range']?.toString(),
  }
}

/**
 * Throws if the file was truncated during the read. Content-Length is already sent, so the connection must be
 * aborted.
 */
async function* requireLength(content: AsyncIterable<Uint8Array>, length: number) {
  let left = length
  for await (const chunk of content) {
    left -= chunk.length
    yield chunk
  }
  if (left > 0)
    throw new Fault('internal', 'file_shrank', 'The file was truncated during the download')
}
