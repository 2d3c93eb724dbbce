import type { Clock } from '@atoll/kit/clock'
import { windowOf, sampleSeconds } from '../../domain/metrics.ts'
import type { Order } from '../../domain/paging.ts'
import { statesShownAs } from '../../domain/sandboxes/sandbox.ts'
import type { ListedState, StartedSandbox } from '../../domain/sandboxes/sandbox.ts'
import { fromSortToken, toSortToken } from '../../domain/sandboxes/sandbox-sort.ts'
import type { SandboxSort } from '../../domain/sandboxes/sandbox-sort.ts'
import type { SandboxFilter, SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { TemplateStore } from '../../domain/template.ts'
import { findTemplateId } from '../templates/find-template.ts'

export interface ListRequest extends Omit<SandboxFilter, 'templateId' | 'states'> {
  readonly template: string | undefined
  readonly states: readonly ListedState[]
  readonly sort: SandboxSort
  readonly order: Order
  readonly limit: number
  readonly nextToken: string | undefined
}

export interface SandboxList {
  readonly sandboxes: readonly StartedSandbox[]
  readonly nextToken?: string
  /** Number of matches on all pages. */
  readonly total: number
  /** Absent when the request did not ask for running sandboxes. */
  readonly totalRunning?: number
}

interface ListPorts {
  readonly store: SandboxStore
  readonly templates: TemplateStore
  readonly clock: Clock
}

export async function listSandboxes(ports: ListPorts, request: ListRequest): Promise<SandboxList> {
  const { template, states, sort, order, limit, nextToken, ...rest } = request
  const { after, ...list } =
    nextToken === undefined
      ? { sort, order, sampledUntil: lastSampled(ports.clock.now()), after: undefined }
      : fromSortToken(nextToken, { sort, order })
  const templateId =
    template === undefined
      ? undefined
      : ((await findTemplateId(ports.templates, template, request.teamId)) ?? null)
  const isRunningAsked = states.includes('running')
  if (templateId === null) {
    return { sandboxes: [], total: 0, ...(isRunningAsked && { totalRunning: 0 }) }
  }
  const filter = { ...rest, templateId, states: statesShownAs(...states) }
  // Read one row more than the limit to see whether there is another page.
  const found = await ports.store.listPage(filter, { ...list, limit: limit + 1, after })
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const counts = await ports.store.countByState(filter)
  const sum = (counted: typeof filter.states) =>
    counted.reduce((total, state) => total + (counts.get(state) ?? 0), 0)
  return {
    sandboxes: page.map(({ sandbox }) => sandbox),
    total: sum(filter.states),
    ...(isRunningAsked && { totalRunning: sum(statesShownAs('running')) }),
    ...(last &&
      found.length > limit && {
        nextToken: toSortToken({ rank: last.rank, id: last.sandbox.id }, list),
      }),
  }
}

/** Returns the last window whose samples are in the store: those of the current one may be written between two pages. */
function lastSampled(now: Date): number {
  return windowOf(now) - sampleSeconds
}
