import { Fault } from '@atoll/kit/fault'
import { fromToken, invalidToken, toToken } from '../paging.ts'
import type { Order } from '../paging.ts'

/** Columns by which a list of sandboxes can be sorted. */
export type SandboxSort = 'started' | 'ends' | 'state' | 'template' | 'cpu' | 'memory'

/** Sort key: rank, then ID (ascending under `desc`, descending under `asc`). */
export interface SortPosition {
  /** Unix milliseconds, name of a template, percent of a CPU, bytes, or state and start time, depending on the column. */
  readonly rank: number | string
  readonly id: string
}

/** Order of a list, the same for all of its pages. */
export interface SortedList {
  readonly sort: SandboxSort
  readonly order: Order
  /** Unix seconds. Later usage samples are ignored, so that all pages sort by the same samples. */
  readonly sampledUntil: number
}

/** Encodes the end of a page. Pages by start time have the tokens that other lists have. */
export function toSortToken({ rank, id }: SortPosition, list: SortedList): string {
  const { sort, order, sampledUntil } = list
  if (sort === 'started') return toToken({ startedAt: new Date(rank), id }, order)
  return Buffer.from(JSON.stringify([sort, order, sampledUntil, rank, id])).toString('base64url')
}

/** Returns the end of the previous page, and the order of its list. */
export function fromSortToken(
  token: string,
  asked: Pick<SortedList, 'sort' | 'order'>,
): SortedList & { readonly after: SortPosition } {
  if (asked.sort === 'started') {
    const { startedAt, id } = fromToken(token, asked.order)
    return { ...asked, sampledUntil: 0, after: { rank: startedAt.getTime(), id } }
  }
  const [sort, order, sampledUntil, rank, id] = readParts(token)
  if (sort !== asked.sort || order !== asked.order) {
    throw invalidToken('it was made for another order; keep `sort` and `order` on every page')
  }
  const isRank = asked.sort === 'template' ? isName(rank) : Number.isFinite(rank)
  if (!isRank || !isName(id) || !Number.isSafeInteger(sampledUntil)) {
    throw invalidToken('take it from the X-Next-Token header of the page before')
  }
  const after = { rank: typeof rank === 'string' ? rank : Number(rank), id }
  return { ...asked, sampledUntil: Number(sampledUntil), after }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}

function readParts(token: string): unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'))
    if (Array.isArray(parts)) return parts
  } catch {
    // not JSON: reported below
  }
  return []
}

const maxWords = 10

/** Splits a search text into words, which must all be found. */
export function toSearchWords(text: string): string[] {
  const words = text.split(/\s+/).filter(Boolean)
  if (words.length <= maxWords) return words
  throw new Fault('invalid', 'invalid_request', `search must have at most ${maxWords} words`)
}
