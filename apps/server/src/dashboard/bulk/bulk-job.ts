/** One action on many sandboxes: the matches of a filter at one moment, a few at a time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { askPlatform, changePlatform } from '../platform.ts'
import type { PlatformAnswer } from '../platform.ts'
import type { Upstream } from '../upstream.ts'

export type BulkAction = 'kill' | 'pause' | 'extend'

export interface BulkProgress {
  readonly action: BulkAction
  /** `stopped`: the user or the end of the session stopped it before the last sandbox. */
  readonly state: 'prepared' | 'running' | 'finished' | 'stopped'
  readonly total: number
  /** True if there are more matches than `total`, the most that one action takes. */
  readonly isCut: boolean
  readonly succeeded: number
  readonly failed: number
  /** Most frequent first. */
  readonly failures: readonly BulkFailure[]
}

export interface BulkFailure {
  /** Message of the API, with `<id>` in place of the sandbox. */
  readonly reason: string
  readonly count: number
  /** At most five of the sandboxes. */
  readonly sandboxIds: readonly string[]
}

export interface BulkJob {
  progress(): BulkProgress
  /** Does nothing when it has started before. */
  start(): void
  /** Lets the calls that are under way finish. */
  stop(): void
}

const maxSandboxes = 10_000
const atOnce = 4
const maxReasons = 20
const maxExamples = 5
const extendSeconds = 3600
const maxAttempts = 5
const longestWaitSeconds = 60

export interface BulkTarget {
  readonly platform: Upstream
  /** Returns undefined when the session has ended. */
  findKey(): string | undefined
}

export interface Matches {
  readonly ids: readonly string[]
  readonly isCut: boolean
}

export function createBulkJob(action: BulkAction, matches: Matches, target: BulkTarget): BulkJob {
  const { ids, isCut } = matches
  const stopping = new AbortController()
  const failures = new Map<string, { count: number; sandboxIds: string[] }>()
  let state: BulkProgress['state'] = 'prepared'
  let succeeded = 0
  let failed = 0
  let next = 0

  const fail = (id: string, message: string) => {
    failed += 1
    const text = message.replaceAll(id, '<id>').slice(0, 300)
    const reason = failures.has(text) || failures.size < maxReasons ? text : 'Other reasons'
    const known = failures.get(reason) ?? { count: 0, sandboxIds: [] }
    failures.set(reason, known)
    known.count += 1
    if (known.sandboxIds.length < maxExamples) known.sandboxIds.push(id)
  }
  const work = async () => {
    while (!stopping.signal.aborted) {
      const id = ids[next]
      if (id === undefined) return
      next += 1
      const outcome = await act(action, id, target, stopping).catch((error) => ({
        reason: String(error),
      }))
      if (outcome === 'done') succeeded += 1
      else if (outcome !== 'untouched') fail(id, outcome.reason)
    }
  }
  const run = async () => {
    await Promise.all(Array.from({ length: atOnce }, work))
    state = succeeded + failed < ids.length ? 'stopped' : 'finished'
  }
  return {
    start() {
      if (state !== 'prepared') return
      state = 'running'
      void run()
    },
    stop() {
      stopping.abort()
      if (state === 'prepared') state = 'stopped'
    },
    progress: () => ({
      ...{ action, state, total: ids.length, isCut, succeeded, failed },
      failures: [...failures]
        .map(([reason, known]) => ({ reason, ...known }))
        .toSorted((a, b) => b.count - a.count),
    }),
  }
}

type Outcome = 'done' | 'untouched' | { readonly reason: string }

/** Waits when the API says that there were too many requests. Begins nothing once the action was stopped. */
async function act(
  action: BulkAction,
  id: string,
  target: BulkTarget,
  stopping: AbortController,
): Promise<Outcome> {
  for (let attempt = 1; ; attempt += 1) {
    const apiKey = target.findKey()
    if (apiKey === undefined) stopping.abort()
    if (apiKey === undefined || stopping.signal.aborted) return 'untouched'
    const answer = await changePlatform({
      platform: target.platform,
      apiKey,
      ...requests[action](id),
    })
    const { status } = answer
    if (status === 401) stopping.abort()
    // A sandbox that has ended meanwhile is what a kill is for.
    if (status < 300 || (action === 'kill' && status === 404)) return 'done'
    const seconds = Number(answer.headers['retry-after'])
    if (status !== 429 || !(seconds > 0) || attempt === maxAttempts) {
      return { reason: messageOf(answer) }
    }
    const waitMs = Math.min(seconds, longestWaitSeconds) * 1_000
    await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
  }
}

const requests = {
  kill: (id: string) => ({ method: 'DELETE', path: `/sandboxes/${id}` }),
  pause: (id: string) => ({ method: 'POST', path: `/sandboxes/${id}/pause`, body: {} }),
  extend: (id: string) => ({
    method: 'POST',
    path: `/sandboxes/${id}/refreshes`,
    body: { duration: extendSeconds },
  }),
} satisfies Record<BulkAction, (id: string) => { method: string; path: string; body?: object }>

function messageOf({ status, body }: PlatformAnswer): string {
  return typeof body === 'object' && body !== null && 'message' in body
    ? String(body.message)
    : `The server answered with HTTP status ${status}`
}

const pageSize = 100

/** Walks all pages of a list of sandboxes. `query` is a query of the API's list, without its paging. */
export async function findMatches(
  target: BulkTarget & { readonly signal: AbortSignal },
  query: URLSearchParams,
): Promise<Matches | PlatformAnswer> {
  const ids = new Set<string>()
  let token: string | undefined = ''
  while (token !== undefined && ids.size < maxSandboxes) {
    const page = new URLSearchParams(query)
    page.set('limit', String(pageSize))
    if (token) page.set('nextToken', token)
    const answer = await askPlatform({
      platform: target.platform,
      apiKey: target.findKey() ?? '',
      path: `/v2/sandboxes?${page.toString()}`,
      signal: target.signal,
    })
    if (answer.status !== 200 || !Array.isArray(answer.body)) return answer
    for (const { sandboxID } of answer.body) ids.add(String(sandboxID))
    token = answer.headers['x-next-token']
  }
  return { ids: [...ids].slice(0, maxSandboxes), isCut: token !== undefined }
}
