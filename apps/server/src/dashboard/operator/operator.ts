/** Requests of the operator's page. An operator signs in with the operator's token, besides or without a team. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { blockTeam, countRunningSandboxes, createTeam } from '@atoll/contracts/teams/admin'
import { killTeamSandboxes, listAllTeams, unblockTeam } from '@atoll/contracts/teams/admin'
import { updateTeam } from '@atoll/contracts/teams/admin'
import { getNode, listNodes, setNodeStatus } from '@atoll/contracts/nodes'
import { Fault } from '@atoll/kit/fault'
import { isSecureOrigin } from '../request-checks.ts'
import { readJson, sendInert, sendJson, sendNothing } from '../responses.ts'
import {
  expiredCookies,
  operatorCookie,
  readSessionToken,
  sessionCookie,
} from '../session-cookie.ts'
import type { Sessions } from '../sessions.ts'
import { bodyHeaders, readBounded } from '../upstream.ts'
import type { Upstream } from '../upstream.ts'

const prefix = '/bff/operator'
const maxRequestBytes = 16 * 1024
const maxAnswerBytes = 32 * 2 ** 20

/** Fixed list: operations that return a key or a token stay out of the browser. */
const forwarded = [
  ...[listNodes, getNode, setNodeStatus, listAllTeams, createTeam, updateTeam],
  ...[blockTeam, unblockTeam, killTeamSandboxes, countRunningSandboxes],
].map(({ method, path }) => ({
  method,
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
}))

interface OperatorParts {
  readonly operatorSessions: Sessions
  readonly platform: Upstream
}

export function isOperatorPath(path: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`)
}

export async function answerOperator(
  req: IncomingMessage,
  res: ServerResponse,
  url: URL,
  parts: OperatorParts,
): Promise<void> {
  // The URL is normalized: the path that is checked is the one that is sent, without `..`.
  const path = url.pathname.slice(prefix.length)
  if (path === '/session') return session(req, res, parts)
  const token = readSessionToken(req, operatorCookie)
  const adminToken = token === undefined ? undefined : parts.operatorSessions.findKey(token)
  if (token === undefined || adminToken === undefined) throw signedOut()
  const isKnown = forwarded.some(
    ({ method, pattern }) => method === req.method && pattern.test(path),
  )
  if (!isKnown) throw new Fault('not_found', 'no_path', `There is no ${req.method} ${path}`)
  const type = req.headers['content-type']
  const reply = await parts.platform.send({
    method: req.method ?? 'GET',
    path: `${path}${url.search}`,
    headers: {
      ...bodyHeaders(req.headers),
      ...(type && { 'content-type': type }),
      'x-admin-token': adminToken,
    },
    body: req,
  })
  const status = reply.statusCode ?? 502
  if (status === 401) await parts.operatorSessions.close(token)
  const text = await readBounded(reply, maxAnswerBytes)
  if (text === '') return void sendInert(res, status, {}).end()
  sendJson(res, status, JSON.parse(text))
}

const SignIn = z.object({ token: z.string().min(1).max(500) })

async function session(req: IncomingMessage, res: ServerResponse, parts: OperatorParts) {
  const { operatorSessions } = parts
  const current = readSessionToken(req, operatorCookie)
  if (req.method === 'GET') {
    if (current === undefined || operatorSessions.findKey(current) === undefined) throw signedOut()
    return sendNothing(res)
  }
  if (req.method === 'DELETE') {
    if (current !== undefined) await operatorSessions.close(current)
    return sendNothing(res, { 'Set-Cookie': expiredCookies(operatorCookie) })
  }
  if (req.method !== 'POST') throw new Fault('not_found', 'no_path', 'There is no such request')
  const { data } = SignIn.safeParse(await readJson(req, maxRequestBytes))
  if (!data) throw new Fault('invalid', 'sign_in', "Send the operator's token")
  await checkToken(parts.platform, data.token.trim())
  if (current !== undefined) await operatorSessions.close(current)
  const token = await operatorSessions.open(data.token.trim())
  sendNothing(res, {
    'Set-Cookie': sessionCookie(token, isSecureOrigin(req.headers), operatorCookie),
  })
}

/** Asks the platform API, which alone knows the operator's token. */
async function checkToken(platform: Upstream, adminToken: string): Promise<void> {
  const isSendable = /^[\x21-\x7e]+$/.test(adminToken)
  const reply = isSendable
    ? await platform.send({
        method: 'GET',
        path: countRunningSandboxes.path,
        headers: { 'x-admin-token': adminToken },
      })
    : undefined
  if (reply) await readBounded(reply, maxAnswerBytes)
  if (reply?.statusCode === 200) return
  if (reply && reply.statusCode !== 401 && reply.statusCode !== 403) {
    throw new Fault('unavailable', 'upstream_failed', 'The server did not answer. Try again.')
  }
  throw new Fault(
    'unauthenticated',
    'sign_in_refused',
    "This is not the operator's token. It is the setting ATOLL_ADMIN_TOKEN of the server.",
  )
}

function signedOut(): Fault {
  return new Fault('unauthenticated', 'no_session', "Sign in with the operator's token.")
}
