/**
 * GET /logs: the node fetches log entries. Like /init, the edge blocks this route, and envd requires the node's
 * secret.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SandboxLog } from '../../app/log.ts'
import { isSameSecret } from '../../domain/access/access.ts'
import { sendText } from '../wire/responses.ts'

export const logsPath = '/logs'

export function handleLogs(
  request: IncomingMessage,
  response: ServerResponse,
  deps: { readonly log: SandboxLog; readonly initToken?: string | undefined },
): void {
  const { 'x-init-token': token } = request.headers
  if (!isSameSecret(deps.initToken, typeof token === 'string' ? token : undefined)) {
    return sendText(
      response,
      401,
      'X-Init-Token is missing or wrong. Only the node may call this endpoint.',
    )
  }
  const after = /^[^?]*\?after=(\d{1,15})$/.exec(request.url ?? '')?.[1]
  if (after === undefined)
    return sendText(response, 400, 'Invalid query. Use /logs?after=<milliseconds since 1970>.')
  const { entries, more } = deps.log.readAfter(Number(after))
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(`{"more":${more},"entries":[${entries.join(',')}]}`)
}
