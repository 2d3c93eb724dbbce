/**
 * POST /prepare: warms up envd, then responds. The node calls it before it takes a checkpoint that other sandboxes
 * restore from.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { rejectUnlessNode } from './require-node.ts'

export interface PrepareDeps {
  readonly initToken?: string | undefined
  readonly prepare: () => Promise<void>
}

export async function handlePrepare(
  request: IncomingMessage,
  response: ServerResponse,
  deps: PrepareDeps,
): Promise<void> {
  if (rejectUnlessNode(request, response, deps.initToken)) return
  request.resume()
  await deps.prepare()
  response.writeHead(204, { 'cache-control': 'no-store' }).end()
}
