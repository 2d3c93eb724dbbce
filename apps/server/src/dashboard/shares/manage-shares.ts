/** Creates, lists and revokes the share links of a sandbox, for a signed-in team. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { faultFromReply } from '@atoll/client/http-fault'
import { Fault } from '@atoll/kit/fault'
import { readJson, sendJson, sendNothing } from '../responses.ts'
import { readBounded } from '../upstream.ts'
import type { Upstream } from '../upstream.ts'
import { maxShareSeconds } from './shares.ts'
import type { Shares } from './shares.ts'

const ofSandbox = /^\/bff\/sandboxes\/([a-z0-9]{1,63})\/shares$/
const one = /^\/bff\/shares\/([0-9a-f-]{36})$/
const maxRequestBytes = 1024

export function isSharesPath(path: string): boolean {
  return ofSandbox.test(path) || one.test(path)
}

const NewShare = z.object({ seconds: z.int().min(60).max(maxShareSeconds) })

export async function manageShares(
  req: IncomingMessage,
  res: ServerResponse,
  { pathname }: URL,
  parts: {
    readonly shares: Shares
    readonly platform: Upstream
    readonly apiKey: string
    describeKey(apiKey: string): Promise<{ readonly teamId: string } | undefined>
  },
): Promise<void> {
  const { shares, apiKey } = parts
  const team = await parts.describeKey(apiKey)
  if (!team) throw new Fault('unauthenticated', 'no_session', 'You are signed out. Sign in again.')
  const { teamId } = team
  const id = one.exec(pathname)?.[1]
  if (id !== undefined && req.method === 'DELETE') {
    if (await shares.revoke(teamId, id)) return sendNothing(res)
    throw new Fault('not_found', 'no_share', 'There is no such link. It may have expired.')
  }
  const sandboxId = ofSandbox.exec(pathname)?.[1]
  if (sandboxId !== undefined && req.method === 'GET') {
    return sendJson(res, 200, { shares: shares.list(teamId, sandboxId) })
  }
  if (sandboxId === undefined || req.method !== 'POST') {
    throw new Fault('not_found', 'no_path', `There is no ${req.method} ${pathname}`)
  }
  const { data } = NewShare.safeParse(await readJson(req, maxRequestBytes))
  if (!data) {
    const message = `A link is valid for 60 seconds to ${maxShareSeconds / 86_400} days`
    throw new Fault('invalid', 'share_seconds', message)
  }
  await requireOwn(parts.platform, apiKey, sandboxId)
  sendJson(res, 201, await shares.create({ teamId, sandboxId, apiKey, seconds: data.seconds }))
}

/** Asks the platform API, so that a team can only share a sandbox of its own. */
async function requireOwn(platform: Upstream, apiKey: string, sandboxId: string): Promise<void> {
  const headers = { 'x-api-key': apiKey }
  const reply = await platform.send({ method: 'GET', path: `/sandboxes/${sandboxId}`, headers })
  const text = await readBounded(reply, 2 ** 20)
  if (reply.statusCode !== 200) throw faultFromReply(reply.statusCode ?? 502, JSON.parse(text))
}
