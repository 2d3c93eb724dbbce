import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ListedSandbox } from '@atoll/client/replies'
import type { Usage } from '../model/sandbox-filter.ts'
import { appendSample } from '../model/samples.ts'
import { api, listPages } from './request.ts'
import type { Pages } from './request.ts'
import { reloadAll, useResource } from './resource.ts'
import type { Resource } from './resource.ts'

const listEveryMs = 3_000
const endedEveryMs = 10_000
const usageEveryMs = 5_000
/** Limit of the API for one request. */
const maxIds = 100
/** Sandboxes whose samples stay for their return into view. */
const maxRecent = 500

/** First sandboxes that match, in their order, and the number of all matches. `query` is a query of the API's list. */
export function useSandboxList(
  query: string,
  enough: number,
): Resource<{ readonly items: ListedSandbox[]; readonly total: number }> {
  const list = useResource<Pages<ListedSandbox>>(
    `sandboxes/list?${query}`,
    (aborted, show) =>
      listPages(`/v2/sandboxes?${query}&limit=100`, { signal: aborted, enough, onPage: show }),
    listEveryMs,
  )
  const { data } = list
  const isShort = data !== undefined && data.items.length < Math.min(enough, data.total)
  useEffect(() => {
    if (isShort) void list.extend()
  }, [query, enough, isShort])
  return list
}

/** Newest ended sandboxes, with the reason of each. */
export function useEndedSandboxes(): Resource<ListedSandbox[]> {
  return useResource(
    'sandboxes/ended',
    (aborted) => api('GET', '/v2/sandboxes?state=ended&limit=100', undefined, aborted),
    endedEveryMs,
  )
}

export type UsageById = Readonly<Record<string, readonly Usage[]>>

/** Samples since the page was opened, for sparklines. */
const recent = signal<UsageById>({})

/** Follows the usage of the sandboxes in view. */
export function useUsage(ids: readonly string[]): UsageById {
  const asked = ids.slice(0, maxIds)
  useResource(
    `usage/${asked.join()}`,
    async (aborted) => {
      if (asked.length === 0) return {}
      const path = `/sandboxes/metrics?sandbox_ids=${asked.join(',')}`
      const { sandboxes } = await api<{ sandboxes: Record<string, Usage> }>(
        'GET',
        path,
        undefined,
        aborted,
      )
      const known = Object.entries(recent.value).slice(-maxRecent)
      recent.value = {
        ...Object.fromEntries(known),
        ...Object.fromEntries(
          Object.entries(sandboxes).map(([id, sample]) => [
            id,
            appendSample(recent.value[id], sample),
          ]),
        ),
      }
      return sandboxes
    },
    usageEveryMs,
  )
  return recent.value
}

const idPath = (id: string) => `/sandboxes/${encodeURIComponent(id)}`

/** Changes of one sandbox. Each is sent as the SDKs send it. */
export const sandboxActions = {
  kill: (id: string) => api('DELETE', idPath(id)),
  pause: (id: string) => api('POST', `${idPath(id)}/pause`, {}),
  resume: (id: string, timeout: number) => api('POST', `/v2${idPath(id)}/connect`, { timeout }),
  setTimeout: (id: string, timeout: number) => api('POST', `${idPath(id)}/timeout`, { timeout }),
  fork: (id: string, body: { count: number; timeout: number }) =>
    api<readonly ForkResult[]>('POST', `${idPath(id)}/fork`, body),
  snapshot: (id: string, name: string) =>
    api<{ snapshotID: string }>('POST', `${idPath(id)}/snapshots`, name ? { name } : {}),
  create: (body: object) => api<{ sandboxID: string }>('POST', '/v2/sandboxes', body),
}

interface ForkResult {
  readonly sandbox?: { readonly sandboxID: string }
  readonly error?: { readonly message: string }
}

export async function thenReload<Result>(change: Promise<Result>): Promise<Result> {
  try {
    return await change
  } finally {
    void reloadAll('sandbox')
  }
}
