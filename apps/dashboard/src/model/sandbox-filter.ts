import type { ListedSandbox } from '@atoll/client/replies'

/** Filters and order of the sandbox list, kept in the URL. */
export interface SandboxFilter {
  readonly text: string
  readonly state: '' | ListedSandbox['state']
  readonly template: string
  readonly sort: SortColumn
  readonly isDescending: boolean
}

export const sortColumns = ['started', 'ends', 'template', 'state', 'cpu', 'memory'] as const
export type SortColumn = (typeof sortColumns)[number]

export function parseFilter(query: URLSearchParams): SandboxFilter {
  const sort = sortColumns.find((column) => column === query.get('sort'))
  return {
    text: query.get('q') ?? '',
    state: parseState(query.get('state')),
    template: query.get('template') ?? '',
    sort: sort ?? 'started',
    isDescending: query.get('order') !== 'asc',
  }
}

export function parseState(text: string | null): SandboxFilter['state'] {
  return (['running', 'paused', 'ended'] as const).find((state) => state === text) ?? ''
}

/** Defaults are left out, so that a plain list has a plain URL. */
export function formatFilter(filter: SandboxFilter): string {
  const query = new URLSearchParams()
  if (filter.text) query.set('q', filter.text)
  if (filter.state) query.set('state', filter.state)
  if (filter.template) query.set('template', filter.template)
  if (filter.sort !== 'started') query.set('sort', filter.sort)
  if (!filter.isDescending) query.set('order', 'asc')
  const text = query.toString()
  return text ? `?${text}` : ''
}

export interface Usage {
  readonly cpuUsedPct: number
  readonly memUsed: number
}

/** Applies the filter to all sandboxes of the team, not to a page of them. */
export function applyFilter(
  sandboxes: readonly ListedSandbox[],
  filter: SandboxFilter,
  usage: Readonly<Record<string, Usage | undefined>> = {},
): ListedSandbox[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = sandboxes.filter(
    (sandbox) =>
      (!filter.state || sandbox.state === filter.state) &&
      (!filter.template || templateName(sandbox) === filter.template) &&
      words.every((word) => searchText(sandbox).includes(word)),
  )
  const sign = filter.isDescending ? -1 : 1
  const rank = rankers[filter.sort]
  return matches.toSorted((a, b) => {
    const [left, right] = [rank(a, usage[a.sandboxID]), rank(b, usage[b.sandboxID])]
    const order = left < right ? -1 : left > right ? 1 : 0
    return order === 0 ? (a.sandboxID < b.sandboxID ? -1 : 1) : sign * order
  })
}

export function templateName({ alias, templateID }: Pick<ListedSandbox, 'alias' | 'templateID'>) {
  return alias ?? templateID
}

function searchText(sandbox: ListedSandbox): string {
  const metadata = Object.entries(sandbox.metadata ?? {}).map(([key, value]) => `${key}=${value}`)
  const words = [sandbox.sandboxID, sandbox.templateID, sandbox.alias ?? '', ...metadata]
  return words.join('\n').toLowerCase()
}

const rankers: Record<
  SortColumn,
  (sandbox: ListedSandbox, usage: Usage | undefined) => string | number
> = {
  started: ({ startedAt }) => Date.parse(startedAt),
  ends: ({ endAt }) => Date.parse(endAt),
  template: templateName,
  state: ({ state }) => state,
  cpu: (_, usage) => usage?.cpuUsedPct ?? -1,
  memory: (_, usage) => usage?.memUsed ?? -1,
}
