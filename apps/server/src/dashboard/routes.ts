/** Requests of the pages, all below /bff. Only sign-in and share links work without a session. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { Fault } from '@atoll/kit/fault'
import type { Bulk } from './bulk/bulk-routes.ts'
import { deniedPath, readDenied } from './denied-connections.ts'
import { downloadFile, showFile, writeFile } from './envd-files.ts'
import { askEnvd, callEnvd } from './envd-rpc.ts'
import { forwardToPlatform, platformPrefix, tagHeader, tagOf } from './platform.ts'
import { answerRecordings, recordingsPath } from './recordings/recording-routes.ts'
import type { Recordings } from './recordings/recordings.ts'
import { answerOperator, isOperatorPath } from './operator/operator.ts'
import { isSecureOrigin } from './request-checks.ts'
import { readJson, sendJson, sendNothing } from './responses.ts'
import { findSandbox } from './sandbox-access.ts'
import {
  expiredCookies,
  operatorCookie,
  readSessionToken,
  sessionCookie,
} from './session-cookie.ts'
import type { Sessions } from './sessions.ts'
import { createAnswerShare, isSharePath } from './shares/shared-sandbox.ts'
import { isSharesPath, manageShares } from './shares/manage-shares.ts'
import type { Shares } from './shares/shares.ts'
import type { Upstream } from './upstream.ts'

/** The team of an API key, as the pages show it. */
export interface TeamFacts {
  readonly teamId: string
  readonly teamName: string
  readonly keyId: string
  readonly limits: object
}

export interface RouteParts {
  readonly sessions: Sessions
  readonly operatorSessions: Sessions
  readonly shares: Shares
  readonly platform: Upstream
  readonly envd: Upstream
  readonly recordings: Recordings
  /** Returns undefined for a key that does not exist. */
  describeKey(apiKey: string): Promise<TeamFacts | undefined>
  /** Returns the API key of a one-time sign-in link, once. */
  redeemLink(token: string): Promise<string | undefined>
  /** Public addresses for snippets and previews. */
  readonly addresses: Readonly<Record<string, string>>
}

const sandboxPath = /^\/bff\/sandboxes\/([a-z0-9]{1,63})\/(file|download|processes|rpc\/(\w+))$/
const maxRequestBytes = 64 * 1024

export function createRoutes(parts: RouteParts, bulk: Bulk) {
  const answerShare = createAnswerShare(parts)
  return async (req: IncomingMessage, res: ServerResponse, url: URL): Promise<void> => {
    const { pathname } = url
    if (pathname === '/bff/session') return session(parts, req, res)
    if (isOperatorPath(pathname)) return answerOperator(req, res, url, parts)
    if (isSharePath(pathname)) return answerShare(req, res, url)
    const { token, apiKey } = requireSession(parts, req)
    if (bulk.claims(pathname)) return bulk.answer(req, res, { pathname, token })
    if (pathname === deniedPath) return sendDenied(parts, req, res, apiKey)
    if (isSharesPath(pathname)) return manageShares(req, res, url, { ...parts, apiKey })
    if (pathname.startsWith(`${platformPrefix}/`)) {
      const onKeyRefused = () => parts.sessions.close(token)
      return forwardToPlatform(req, res, { platform: parts.platform, apiKey, onKeyRefused })
    }
    if (pathname.startsWith(recordingsPath)) {
      const { recordings } = parts
      const { teamId } = await requireTeam(parts, token, apiKey)
      return answerRecordings(req, res, { recordings, teamId, pathname })
    }
    const match = sandboxPath.exec(pathname)
    if (!match?.[1]) throw new Fault('not_found', 'no_path', `There is no ${pathname}`)
    const access = await findSandbox(parts.platform, apiKey, match[1])
    const { envd } = parts
    const route = `${req.method} ${match[3] ? 'rpc' : match[2]}`
    if (route === 'POST rpc') {
      const request = await readJson(req, maxRequestBytes)
      return callEnvd(res, { envd, access, method: match[3] ?? '', request })
    }
    if (route === 'GET processes') {
      const body = await askEnvd({ envd, access, method: 'List', request: {} })
      return sendJson(res, 200, body, { [tagHeader]: tagOf(200, body) })
    }
    const path = url.searchParams.get('path')
    if (!path) throw new Fault('invalid', 'path_missing', 'The query parameter path is missing')
    if (route === 'GET file') return showFile(res, { envd, access, path })
    if (route === 'GET download') return downloadFile(res, { envd, access, path })
    if (route === 'PUT file') return writeFile(req, res, { envd, access, path })
    throw new Fault('not_found', 'no_path', `There is no ${req.method} ${pathname}`)
  }
}

async function sendDenied(
  { platform }: RouteParts,
  req: IncomingMessage,
  res: ServerResponse,
  apiKey: string,
): Promise<void> {
  if (req.method !== 'GET') throw new Fault('not_found', 'no_path', 'There is no such request')
  const leaving = new AbortController()
  res.once('close', () => leaving.abort())
  const body = await readDenied({ platform, apiKey }, leaving.signal)
  sendJson(res, 200, body, { [tagHeader]: tagOf(200, body) })
}

export function requireSession(
  { sessions }: Pick<RouteParts, 'sessions'>,
  req: IncomingMessage,
): { readonly token: string; readonly apiKey: string } {
  const token = readSessionToken(req)
  const apiKey = token === undefined ? undefined : sessions.findKey(token)
  if (token !== undefined && apiKey !== undefined) return { token, apiKey }
  throw new Fault('unauthenticated', 'no_session', 'You are signed out. Sign in again.')
}

/** Returns the team of the session's key. A session without its key ends. */
async function requireTeam(parts: RouteParts, token: string, apiKey: string): Promise<TeamFacts> {
  const team = await parts.describeKey(apiKey)
  if (team) return team
  await parts.sessions.close(token)
  throw new Fault('unauthenticated', 'no_session', 'The API key of this session was deleted.')
}

const SignIn = z.union([
  z.object({ apiKey: z.string().max(200) }),
  z.object({ link: z.string().max(200) }),
])

async function session(parts: RouteParts, req: IncomingMessage, res: ServerResponse) {
  if (req.method === 'GET') {
    const { token, apiKey } = requireSession(parts, req)
    const team = await requireTeam(parts, token, apiKey)
    return sendJson(res, 200, { ...team, addresses: parts.addresses })
  }
  if (req.method === 'POST') return signIn(parts, req, res)
  if (req.method !== 'DELETE') throw new Fault('not_found', 'no_path', 'There is no such request')
  const token = readSessionToken(req)
  if (token !== undefined) await parts.sessions.close(token)
  // A user who leaves the browser to others must not leave the operator's page open.
  const operator = readSessionToken(req, operatorCookie)
  if (operator !== undefined) await parts.operatorSessions.close(operator)
  sendNothing(res, { 'Set-Cookie': [...expiredCookies(), ...expiredCookies(operatorCookie)] })
}

async function signIn(parts: RouteParts, req: IncomingMessage, res: ServerResponse) {
  const { data } = SignIn.safeParse(await readJson(req, maxRequestBytes))
  if (!data) throw new Fault('invalid', 'sign_in', 'Send an API key or the token of a sign-in link')
  const apiKey = 'link' in data ? await parts.redeemLink(data.link) : data.apiKey.trim()
  const team = apiKey === undefined ? undefined : await parts.describeKey(apiKey)
  if (apiKey === undefined || !team) {
    const message =
      'link' in data
        ? 'This sign-in link was used already or is too old. Sign in with an API key.'
        : 'This API key does not exist. It begins with e2b_ and has 40 more characters.'
    throw new Fault('unauthenticated', 'sign_in_refused', message)
  }
  const token = await parts.sessions.open(apiKey)
  const cookie = sessionCookie(token, isSecureOrigin(req.headers))
  sendJson(res, 200, { ...team, addresses: parts.addresses }, { 'Set-Cookie': cookie })
}
