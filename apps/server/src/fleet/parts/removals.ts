import type { Logger } from '@atoll/kit/log'
import type { Member } from '../identity/authority.ts'
import { startPolling } from './polling.ts'

const intervalMs = 2_000

/** Members that were removed. Their certificates are refused although they are still valid. */
export interface Removals {
  readonly has: (member: Member) => boolean
  readonly ids: () => readonly string[]
  onChange(listener: () => void): void
  close(): Promise<void>
}

/**
 * Reads the list every few seconds. Throws if the first read fails: with an empty list, this part would accept removed members,
 * and so would the nodes that get the list.
 */
export async function startRemovals(
  list: () => Promise<readonly string[]>,
  log: Logger,
): Promise<Removals> {
  const set = createRemovalSet()
  set.replace(await list())
  const polling = startPolling('list removed members', intervalMs, log, async () =>
    set.replace(await list()),
  )
  const { has, ids, onChange } = set
  return { has, ids, onChange, close: polling.close }
}

export type RemovalSet = ReturnType<typeof createRemovalSet>

export function createRemovalSet() {
  let removed: ReadonlySet<string> = new Set()
  let notify = () => {}
  return {
    has: ({ id }: Member): boolean => removed.has(id),
    ids: (): readonly string[] => [...removed],
    onChange: (listener: () => void) => void (notify = listener),
    replace(ids: readonly string[]): void {
      removed = new Set(ids)
      notify()
    },
  }
}
