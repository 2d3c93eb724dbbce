import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { fromToken, toToken } from '../domain/paging.ts'
import { absent, extend, isRunning, setTimeoutOf } from '../domain/sandbox.ts'
import type { RunningSandbox } from '../domain/sandbox.ts'
import type { Order, SandboxFilter, SandboxStore } from '../domain/sandbox-store.ts'
import { parseReference } from '../domain/template.ts'
import type { TemplateStore } from '../domain/template.ts'
import type { Ending } from './ending.ts'
import type { LimitsOf } from './limits.ts'

/** What a team does with the sandboxes it has. Those of other teams look as if they did not exist. */
export interface Sandboxes {
  get(teamId: string, id: string): Promise<RunningSandbox>
  listAll(filter: SandboxFilter): Promise<RunningSandbox[]>
  list(request: ListRequest): Promise<SandboxList>
  kill(teamId: string, id: string): Promise<void>
  setTimeout(teamId: string, id: string, seconds: number): Promise<void>
  /** Never takes time away, and gives at least a little. */
  refresh(teamId: string, id: string, seconds: number): Promise<void>
  connect(teamId: string, id: string, seconds: number): Promise<RunningSandbox>
}

export interface ListRequest extends Omit<SandboxFilter, 'templateId'> {
  readonly template: string | undefined
  readonly includeRunning: boolean
  readonly order: Order
  readonly limit: number
  readonly nextToken: string | undefined
}

export interface SandboxList {
  readonly sandboxes: readonly RunningSandbox[]
  readonly nextToken?: string
  /** Absent when running ones were not asked for. */
  readonly totalRunning?: number
}

const shortestRefreshSeconds = 15

export function createSandboxes(deps: {
  readonly store: SandboxStore
  readonly templates: TemplateStore
  readonly ending: Ending
  readonly clock: Clock
  readonly limitsOf: LimitsOf
  /** The end of a sandbox has moved. */
  readonly onEndChanged: () => void
}): Sandboxes {
  const { store, ending, clock, limitsOf, onEndChanged } = deps

  const change = async (
    teamId: string,
    id: string,
    apply: (current: RunningSandbox) => RunningSandbox,
  ): Promise<RunningSandbox> => {
    const changed = await store.update(id, (current) => {
      if (current.teamId !== teamId) throw absent(id)
      if (current.state === 'killing') throw beingKilled(id)
      if (!isRunning(current)) throw absent(id, current)
      return apply(current)
    })
    if (!changed) throw absent(id)
    onEndChanged()
    return changed
  }

  return {
    async get(teamId, id) {
      const sandbox = await store.find(id)
      if (sandbox?.teamId !== teamId) throw absent(id)
      if (!isRunning(sandbox)) throw absent(id, sandbox)
      return sandbox
    },
    listAll: (filter) => store.listRunning(filter),
    list: (request) => list(deps, request),
    async kill(teamId, id) {
      const sandbox = await store.find(id)
      if (sandbox?.teamId !== teamId) throw absent(id)
      if (sandbox.state === 'creating' || sandbox.state === 'ended') throw absent(id, sandbox)
      if (await ending.begin(id, 'was killed')) await ending.finish(id)
    },
    async setTimeout(teamId, id, seconds) {
      const { maxSandboxSeconds: maxSeconds } = await limitsOf(teamId)
      await change(teamId, id, (current) =>
        setTimeoutOf(current, { now: clock.now(), seconds, maxSeconds }),
      )
    },
    async refresh(teamId, id, seconds) {
      const { maxSandboxSeconds: maxSeconds } = await limitsOf(teamId)
      await change(teamId, id, (current) =>
        extend(current, {
          now: clock.now(),
          seconds: Math.max(seconds, shortestRefreshSeconds),
          maxSeconds,
        }),
      )
    },
    async connect(teamId, id, seconds) {
      const { maxSandboxSeconds: maxSeconds } = await limitsOf(teamId)
      checkSeconds(seconds, maxSeconds)
      return change(teamId, id, (current) =>
        extend(current, { now: clock.now(), seconds, maxSeconds }),
      )
    },
  }
}

export function checkSeconds(seconds: number, maxSeconds: number): void {
  if (seconds <= maxSeconds) return
  throw new Fault(
    'invalid',
    'invalid_timeout',
    `timeout must be at most ${maxSeconds} seconds, the longest that a sandbox may run`,
  )
}

function beingKilled(id: string): Fault {
  return new Fault('conflict', 'sandbox_killing', `Sandbox ${id} is being killed`)
}

async function list(
  deps: { readonly store: SandboxStore; readonly templates: TemplateStore },
  request: ListRequest,
): Promise<SandboxList> {
  const { template, includeRunning, order, limit, nextToken, ...rest } = request
  const after = nextToken === undefined ? undefined : fromToken(nextToken, order)
  const templateId =
    template === undefined ? undefined : await findTemplate(deps, template, request.teamId)
  if (!includeRunning) return { sandboxes: [] }
  if (templateId === null) return { sandboxes: [], totalRunning: 0 }
  const filter = { ...rest, templateId }
  // One more than asked for tells whether there is another page.
  const found = await deps.store.listRunning(filter, { order, limit: limit + 1, after })
  const sandboxes = found.slice(0, limit)
  const last = sandboxes.at(-1)
  const totalRunning = await deps.store.countRunning(filter)
  if (!last || found.length <= limit) return { sandboxes, totalRunning }
  return { sandboxes, totalRunning, nextToken: toToken(last, order) }
}

/** Null when nobody knows it: then no sandbox matches. */
async function findTemplate(
  { templates }: { readonly templates: TemplateStore },
  text: string,
  teamId: string,
): Promise<string | null> {
  const { namespace, name, tag } = parseReference(text)
  if (tag !== undefined) {
    throw new Fault(
      'invalid',
      'invalid_template_reference',
      'template must be a template id or name without a tag',
    )
  }
  const template = namespace === undefined ? await templates.find(name, teamId) : undefined
  return template?.id ?? null
}
