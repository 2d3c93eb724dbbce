import type { Logger } from '@atoll/kit/log'
import type { Member } from '../identity/authority.ts'
import { startPolling } from './polling.ts'

const intervalMs = 2_000

/** Members that were removed. Their certificates are refused although they are still valid. */
export interface Removals {
  readonly first: Promise<void>
  readonly has: (member: Member) => boolean
  readonly ids: () => readonly string[]
  onChange(listener: () => void): void
  close(): Promise<void>
}

export function startRemovals(list: () => Promise<readonly string[]>, log: Logger): Removals {
  const set = createRemovalSet()
  const polling = startPolling('list removed members', intervalMs, log, async () =>
    set.replace(await list()),
  )
  const { has, ids, onChange } = set
  return { first: polling.first, has, ids, onChange, close: polling.close }
}

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
