/**
 * Access check of endpoints for the node. Threats: the edge blocks these routes, but programs in the sandbox can
 * reach them. So they require the secret that the node passed to envd at the start.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isSameSecret } from '../../domain/access/access.ts'
import { envdVersion } from '../../version.ts'
import { sendText } from '../wire/responses.ts'

/** Responds with 401 unless the request has the node's secret. Returns whether it responded. */
export function rejectUnlessNode(
  request: IncomingMessage,
  response: ServerResponse,
  initToken: string | undefined,
): boolean {
  response.setHeader('x-envd-version', envdVersion)
  const { 'x-init-token': token } = request.headers
  if (isSameSecret(initToken, typeof token === 'string' ? token : undefined)) return false
  sendText(response, 401, 'X-Init-Token is missing or wrong. Only the node may call this endpoint.')
  return true
}
