/** All kinds of requests whose acknowledged change must survive, by name. */
import { deleteSnapshot, fork, snapshot } from './copy-requests.ts'
import { create, kill, network, pause, resume, write } from './sandbox-requests.ts'
import { deleteSecret, secret, updateSecret } from './secret-requests.ts'
import { build, deleteTemplate } from './template-requests.ts'
import type { RequestContext, AcknowledgedRequest } from './acknowledged-request.ts'

const kinds: Readonly<Record<string, (context: RequestContext) => Promise<AcknowledgedRequest>>> = {
  create,
  write,
  pause,
  resume,
  fork,
  snapshot,
  deleteSnapshot,
  build,
  deleteTemplate,
  secret,
  updateSecret,
  deleteSecret,
  network,
  kill,
}

export const requestKinds: readonly string[] = Object.keys(kinds)

/** Prepares a request of this kind: creates everything that the request needs. */
export async function prepareRequest(
  kind: string,
  context: RequestContext,
): Promise<AcknowledgedRequest> {
  const prepare = kinds[kind]
  if (!prepare) throw new Error(`Unknown kind of request: ${kind}`)
  return prepare(context)
}
