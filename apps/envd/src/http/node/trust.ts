/** POST /trust: the node sends a CA to install, without other settings. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import type { CaTrust } from '../../app/ca-trust.ts'
import { parseCertificates } from '../../domain/trust/certificates.ts'
import { readJson } from '../wire/json-body.ts'
import { rejectUnlessNode } from './require-node.ts'

export async function handleTrust(
  request: IncomingMessage,
  response: ServerResponse,
  deps: { readonly trust: CaTrust; readonly initToken?: string | undefined },
): Promise<void> {
  if (rejectUnlessNode(request, response, deps.initToken)) return
  const body = await readJson(request, bodyLimitBytes)
  if (typeof body !== 'object' || body === null || !('caBundle' in body)) {
    throw new Fault(
      'invalid',
      'bad_trust',
      'The request body must be a JSON object with the field caBundle',
    )
  }
  await deps.trust.install(parseCertificates(body.caBundle))
  response.writeHead(204, { 'cache-control': 'no-store' }).end()
}

/** Limit for the longest valid bundle with every character escaped. */
const bodyLimitBytes = 512 * 1024
