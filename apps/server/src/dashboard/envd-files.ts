/**
 * Files of a sandbox. Threats: a file of a sandbox shown as a page would run on the dashboard's origin. So a file is
 * plain text under a policy that lets nothing run, or an attachment.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { faultFromReply } from '@atoll/client/http-fault'
import { toErrorBody } from './envd-rpc.ts'
import { sendInert, sendNothing } from './responses.ts'
import { envdHeaders } from './sandbox-access.ts'
import type { SandboxAccess } from './sandbox-access.ts'
import { bodyHeaders, readBounded } from './upstream.ts'
import type { Upstream } from './upstream.ts'

/** Text beyond this size is downloaded, not shown. */
const maxShownBytes = 2 ** 20
const maxErrorBytes = 64 * 1024

interface FileCall {
  readonly envd: Upstream
  readonly access: SandboxAccess
  readonly path: string
}

export async function showFile(res: ServerResponse, call: FileCall): Promise<void> {
  const reply = await readFileOf(call)
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of reply) {
    size += piece.length
    pieces.push(piece)
    if (size > maxShownBytes) break
  }
  const isTruncated = size > maxShownBytes
  sendInert(res, 200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    ...(isTruncated && { 'X-Atoll-Truncated': '1' }),
  }).end(Buffer.concat(pieces).subarray(0, maxShownBytes))
}

export async function downloadFile(res: ServerResponse, call: FileCall): Promise<void> {
  const reply = await readFileOf(call)
  const length = reply.headers['content-length']
  sendInert(res, 200, {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': attachment(call.path),
    'Cache-Control': 'no-store',
    ...(length && { 'Content-Length': length }),
  })
  await pipeline(reply, res)
}

export async function writeFile(
  req: IncomingMessage,
  res: ServerResponse,
  call: FileCall,
): Promise<void> {
  const reply = await call.envd.send({
    method: 'POST',
    path: `/files?path=${encodeURIComponent(call.path)}`,
    headers: {
      ...envdHeaders(call.access),
      ...bodyHeaders(req.headers),
      'content-type': 'application/octet-stream',
    },
    body: req,
  })
  await refuseFailure(reply)
  reply.resume()
  sendNothing(res)
}

async function readFileOf({ envd, access, path }: FileCall): Promise<IncomingMessage> {
  const reply = await envd.send({
    method: 'GET',
    path: `/files?path=${encodeURIComponent(path)}`,
    headers: { ...envdHeaders(access), 'accept-encoding': 'identity' },
  })
  await refuseFailure(reply)
  return reply
}

async function refuseFailure(reply: IncomingMessage): Promise<void> {
  const status = reply.statusCode ?? 502
  if (status >= 200 && status < 300) return
  const text = await readBounded(reply, maxErrorBytes)
  let body: unknown
  try {
    body = toErrorBody(JSON.parse(text))
  } catch {
    body = { code: 0, message: `The sandbox answered with HTTP status ${status}` }
  }
  throw faultFromReply(status, body)
}

/** RFC 6266: a plain name for old clients, and the real one as percent-encoded UTF-8. */
function attachment(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1) || 'file'
  const plain = name.replaceAll(/[^\w.-]/g, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}
