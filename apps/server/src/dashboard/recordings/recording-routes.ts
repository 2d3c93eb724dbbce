/** Requests of the pages for recordings of their team. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { Fault } from '@atoll/kit/fault'
import { sendInert, sendJson, sendNothing } from '../responses.ts'
import type { Recordings } from './recordings.ts'

export const recordingsPath = '/bff/recordings'

const pattern = /^\/bff\/recordings(?:\/([\w-]{1,120})(\/download)?)?$/

export async function answerRecordings(
  req: IncomingMessage,
  res: ServerResponse,
  call: { readonly recordings: Recordings; readonly teamId: string; readonly pathname: string },
): Promise<void> {
  const { recordings, teamId, pathname } = call
  const match = pattern.exec(pathname)
  const id = match?.[1]
  if (match && id === undefined && req.method === 'GET') {
    return sendJson(res, 200, { recordings: await recordings.list(teamId) })
  }
  if (id !== undefined && req.method === 'GET') {
    const { stream, size } = await recordings.read(teamId, id)
    sendInert(res, 200, {
      'Content-Type': match?.[2] ? 'application/x-asciicast' : 'text/plain; charset=utf-8',
      'Content-Length': String(size),
      'Cache-Control': 'no-store',
      ...(match?.[2] && { 'Content-Disposition': `attachment; filename="${id}.cast"` }),
    })
    return pipeline(stream, res)
  }
  if (id !== undefined && !match?.[2] && req.method === 'DELETE') {
    await recordings.remove(teamId, id)
    return sendNothing(res)
  }
  throw new Fault('not_found', 'no_path', `There is no ${req.method} ${pathname}`)
}
