/**
 * Endpoints for the node alone. Threats: the edge refuses them, but whoever runs in the sandbox can reach us too. So they
 * need the secret that the node gave us at the start.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isSameSecret } from '../../domain/access/access.ts'
import { envdVersion } from '../../version.ts'
import { sendText } from '../wire/responses.ts'

/** Answers whoever is not the node. Whether it did. */
export function rejectUnlessNode(
  request: IncomingMessage,
  response: ServerResponse,
  initToken: string | undefined,
): boolean {
  response.setHeader('x-envd-version', envdVersion)
  const { 'x-init-token': token } = request.headers
  if (isSameSecret(initToken, typeof token === 'string' ? token : undefined)) return false
  sendText(response, 401, 'X-Init-Token is missing or wrong')
  return true
}
