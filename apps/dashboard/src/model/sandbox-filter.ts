import type { ListedSandbox } from '@atoll/client/replies'

/** Filters and order of the sandbox list, kept in the URL and applied by the server. */
export interface SandboxFilter {
  readonly text: string
  readonly state: '' | ListedSandbox['state']
  readonly template: string
  /** Pairs `key=value` that must all match. */
  readonly metadata: readonly string[]
  readonly sort: SortColumn
  readonly isDescending: boolean
}

const sortColumns = ['started', 'ends', 'state', 'template', 'cpu', 'memory'] as const
export type SortColumn = (typeof sortColumns)[number]

/** Limits of the API. */
const maxText = 200
const maxWords = 10

export function parseFilter(query: URLSearchParams): SandboxFilter {
  const sort = sortColumns.find((column) => column === query.get('sort'))
  return {
    text: query.get('q') ?? '',
    state: parseState(query.get('state')),
    template: query.get('template') ?? '',
    metadata: query.getAll('metadata').filter((pair) => pair.indexOf('=') > 0),
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
  for (const pair of filter.metadata) query.append('metadata', pair)
  if (filter.sort !== 'started') query.set('sort', filter.sort)
  if (!filter.isDescending) query.set('order', 'asc')
  const text = query.toString()
  return text ? `?${text}` : ''
}

export function isFiltered(filter: SandboxFilter): boolean {
  return Boolean(filter.text || filter.state || filter.template || filter.metadata.length > 0)
}

/** Cuts a search text to the limits of the API. */
export function toSearch(text: string): string {
  return text.trim().split(/\s+/).slice(0, maxWords).join(' ').slice(0, maxText).trimEnd()
}

/** Fields of the filter as the API calls them. */
export function toApiFilter({ text, state, template, metadata }: SandboxFilter) {
  const search = toSearch(text)
  const pairs = metadata.map((pair) => {
    const at = pair.indexOf('=')
    return `${encodeURIComponent(pair.slice(0, at))}=${encodeURIComponent(pair.slice(at + 1))}`
  })
  return {
    ...(search && { search }),
    ...(state && { state }),
    ...(template && { template }),
    ...(pairs.length > 0 && { metadata: pairs.join('&') }),
  }
}

/** Query for the API's list of sandboxes, without its paging. */
export function toListQuery(filter: SandboxFilter): string {
  const { sort, isDescending } = filter
  const order = isDescending ? 'desc' : 'asc'
  return new URLSearchParams({ ...toApiFilter(filter), sort, order }).toString()
}

export interface Usage {
  readonly cpuUsedPct: number
  readonly memUsed: number
}

export function templateName({ alias, templateID }: Pick<ListedSandbox, 'alias' | 'templateID'>) {
  return alias ?? templateID
}
