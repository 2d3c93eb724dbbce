/** Answers requests of a share link. The link fixes the sandbox; a request chooses one of a few things to read. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { Fault } from '@atoll/kit/fault'
import { sendJson } from '../responses.ts'
import { readBounded } from '../upstream.ts'
import type { Upstream } from '../upstream.ts'
import { createRecentAnswers } from './recent-answers.ts'
import type { SharedAccess, Shares } from './shares.ts'

const prefix = '/bff/share/'
const logLines = 200
const maxAnswerBytes = 8 * 2 ** 20

export function isSharePath(path: string): boolean {
  return path.startsWith(prefix)
}

export type AnswerShare = (req: IncomingMessage, res: ServerResponse, url: URL) => Promise<void>

export function createAnswerShare({
  shares,
  platform,
}: {
  readonly shares: Shares
  readonly platform: Upstream
}): AnswerShare {
  const recent = createRecentAnswers()
  return async (req, res, { pathname }) => {
    const token = req.headers['x-atoll-share']
    const access = typeof token === 'string' ? shares.find(token) : undefined
    if (!access) {
      throw new Fault('unauthenticated', 'no_share', 'This link was revoked or has expired.')
    }
    if (req.method !== 'GET')
      throw new Fault('forbidden', 'read_only', 'A shared sandbox is read-only')
    const what = pathname.slice(prefix.length)
    const read = Object.hasOwn(readers, what) ? readers[what] : undefined
    if (!read) {
      throw new Fault('not_found', 'no_path', 'A share link shows the state, usage and logs only')
    }
    const body = await recent.find(`${access.id} ${what}`, () => read(platform, access))
    sendJson(res, 200, body)
  }
}

/** Neither tokens nor network rules nor metadata: only fields that are named here leave the server. */
const Shown = z.object({
  sandboxID: z.string(),
  templateID: z.string(),
  alias: z.string().optional(),
  state: z.string(),
  startedAt: z.string(),
  endAt: z.string(),
  cpuCount: z.number(),
  memoryMB: z.number(),
  diskSizeMB: z.number(),
})
const Ended = z.object({ message: z.string() })
const Points = z.array(z.record(z.string(), z.union([z.number(), z.string()])))
const Logs = z.object({
  logs: z.array(
    z.object({
      ...{ timestamp: z.string(), level: z.string(), message: z.string() },
      fields: z.record(z.string(), z.string()),
    }),
  ),
})

type Read = (platform: Upstream, access: SharedAccess) => Promise<unknown>

const readers: Readonly<Record<string, Read>> = {
  async sandbox(platform, access) {
    const { sandboxId, expiresAt } = access
    const { status, body } = await ask(platform, access, `/sandboxes/${sandboxId}`)
    if (status === 200) return { ...Shown.parse(body), expiresAt }
    const { message } = Ended.parse(body)
    return { sandboxID: sandboxId, state: 'ended', message, expiresAt }
  },
  async metrics(platform, access) {
    const path = `/sandboxes/${access.sandboxId}/metrics`
    const { status, body } = await ask(platform, access, path)
    return status === 200 ? Points.parse(body) : []
  },
  async logs(platform, access) {
    const path = `/v2/sandboxes/${access.sandboxId}/logs?level=info&limit=${logLines}`
    const { status, body } = await ask(platform, access, path)
    return status === 200 ? Logs.parse(body) : { logs: [] }
  },
}

/** Returns the answer if the sandbox exists or has ended. Other errors concern the team: visitors do not see their text. */
async function ask(platform: Upstream, { apiKey }: SharedAccess, path: string) {
  const reply = await platform.send({ method: 'GET', path, headers: { 'x-api-key': apiKey } })
  const status = reply.statusCode ?? 502
  const text = await readBounded(reply, maxAnswerBytes)
  if (status === 401) {
    throw new Fault('unauthenticated', 'no_share', 'The API key of this link was deleted.')
  }
  if (status !== 200 && status !== 404) {
    throw new Fault('unavailable', 'share_failed', 'The sandbox cannot be read now. Try again.')
  }
  const body: unknown = JSON.parse(text)
  return { status, body }
}
