/**
 * Actions on all matches of a filter. The first request finds the matches and returns their number, which the user
 * confirms; the second one starts. So exactly the confirmed sandboxes are changed, and none that match later.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import { Fault } from '@atoll/kit/fault'
import { faultFromReply } from '@atoll/client/http-fault'
import { readJson, sendJson, sendNothing } from '../responses.ts'
import { hashOf } from '../sealed.ts'
import type { Sessions } from '../sessions.ts'
import type { Upstream } from '../upstream.ts'
import { createBulkJob, findMatches } from './bulk-job.ts'
import type { BulkAction, BulkJob } from './bulk-job.ts'

const path = /^\/bff\/bulk(?:\/([\w-]{22})(\/start)?)?$/
const maxJobsOfSession = 5
const maxJobs = 100
const keptMs = 15 * 60 * 1_000
const maxRequestBytes = 16 * 1024

interface KeptJob {
  readonly job: BulkJob
  /** Hash of the session's token. */
  readonly owner: string
  readonly madeAt: number
}

export interface BulkParts {
  readonly sessions: Pick<Sessions, 'findKey'>
  readonly platform: Upstream
}

export interface Bulk {
  claims(pathname: string): boolean
  answer(req: IncomingMessage, res: ServerResponse, call: BulkCall): Promise<void>
  /** Stops all actions. */
  close(): void
}

interface BulkCall {
  readonly pathname: string
  /** Session that asks. */
  readonly token: string
}

const Request = z.object({
  action: z.enum(['kill', 'pause', 'extend']),
  filter: z.object({
    search: z.string().max(200).optional(),
    state: z.enum(['running', 'paused']).optional(),
    template: z.string().max(200).optional(),
    metadata: z.string().max(4_000).optional(),
  }),
})

export function createBulk({ sessions, platform }: BulkParts): Bulk {
  const jobs = new Map<string, KeptJob>()

  const prepare = async (req: IncomingMessage, res: ServerResponse, token: string) => {
    const { data } = Request.safeParse(await readJson(req, maxRequestBytes))
    if (!data) throw new Fault('invalid', 'bulk', 'Send an action and a filter')
    const owner = hashOf(token)
    makeRoom(jobs, owner)
    const leaving = new AbortController()
    res.once('close', () => leaving.abort())
    const target = { platform, findKey: () => sessions.findKey(token), signal: leaving.signal }
    const query = toQuery(data.action, data.filter)
    const matches = query ? await findMatches(target, query) : { ids: [], isCut: false }
    if ('status' in matches) throw faultFromReply(matches.status, matches.body)
    const job = createBulkJob(data.action, matches, target)
    const id = randomBytes(16).toString('base64url')
    jobs.set(id, { job, owner, madeAt: Date.now() })
    sendJson(res, 201, { id, ...job.progress() })
  }

  return {
    claims: (pathname) => path.test(pathname),
    async answer(req, res, { pathname, token }) {
      const [, id, start] = path.exec(pathname) ?? []
      const route = `${req.method} ${id ? 'job' : ''}${start ?? ''}`
      if (route === 'POST ') return prepare(req, res, token)
      const kept = jobs.get(id ?? '')
      if (kept?.owner !== hashOf(token)) {
        const message = 'This action is not known: it is too old, or the server was restarted.'
        throw new Fault('not_found', 'bulk_unknown', message)
      }
      if (route === 'POST job/start') kept.job.start()
      else if (route === 'DELETE job') kept.job.stop()
      else if (route !== 'GET job') {
        throw new Fault('not_found', 'no_path', `There is no ${req.method} ${pathname}`)
      }
      if (route === 'DELETE job') return sendNothing(res)
      sendJson(res, 200, { id, ...kept.job.progress() })
    },
    close() {
      for (const { job } of jobs.values()) job.stop()
      jobs.clear()
    },
  }
}

/** Forgets actions that are old, or too many, and not running. */
function makeRoom(jobs: Map<string, KeptJob>, owner: string): void {
  for (const [id, kept] of jobs) {
    if (kept.job.progress().state === 'running') continue
    const isOld = Date.now() - kept.madeAt > keptMs
    const isSurplus = kept.owner === owner && countOf(jobs, owner) >= maxJobsOfSession
    if (isOld || isSurplus) jobs.delete(id)
  }
  if (countOf(jobs, owner) < maxJobsOfSession && jobs.size < maxJobs) return
  const message = 'Too many actions are under way. Wait until one has finished.'
  throw new Fault('exhausted', 'bulk_limit', message)
}

function countOf(jobs: ReadonlyMap<string, KeptJob>, owner: string): number {
  return [...jobs.values()].filter((kept) => kept.owner === owner).length
}

/** Returns undefined if nothing can match: only running sandboxes can be paused and extended. */
function toQuery(
  action: BulkAction,
  filter: z.infer<typeof Request>['filter'],
): URLSearchParams | undefined {
  if (action !== 'kill' && filter.state === 'paused') return undefined
  const state = action === 'kill' ? (filter.state ?? 'running,paused') : 'running'
  const { search = '', template = '', metadata = '' } = filter
  const given = Object.entries({ search, template, metadata, state })
  return new URLSearchParams(given.filter(([, value]) => value !== ''))
}
