import { z } from 'zod'
import { Fault } from '@atoll/kit/fault'
import { faultFromReply } from '@atoll/client/http-fault'
import { readBounded } from './upstream.ts'
import type { Upstream } from './upstream.ts'

/** Credentials for envd of a sandbox, used on behalf of a session. They stay on the server. */
export interface SandboxAccess {
  readonly sandboxId: string
  readonly accessToken?: string | undefined
}

const Detail = z.object({ state: z.string(), envdAccessToken: z.string().optional() })

/** Asks the platform API, so that the key, the team and the state are checked on every use. */
export async function findSandbox(
  platform: Upstream,
  apiKey: string,
  sandboxId: string,
): Promise<SandboxAccess> {
  const reply = await platform.send({
    method: 'GET',
    path: `/sandboxes/${encodeURIComponent(sandboxId)}`,
    headers: { 'x-api-key': apiKey },
  })
  const body: unknown = JSON.parse(await readBounded(reply, 2 ** 20))
  if (reply.statusCode !== 200) throw faultFromReply(reply.statusCode ?? 502, body)
  const { state, envdAccessToken } = Detail.parse(body)
  if (state !== 'running') {
    throw new Fault('conflict', 'sandbox_paused', 'The sandbox is paused. Resume it first.')
  }
  return { sandboxId, accessToken: envdAccessToken }
}

export function envdHeaders({ sandboxId, accessToken }: SandboxAccess): Record<string, string> {
  return {
    'svc-sandbox-id': sandboxId,
    'svc-sandbox-port': '49983',
    ...(accessToken && { 'x-access-token': accessToken }),
  }
}
