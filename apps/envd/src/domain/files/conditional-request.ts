/**
 * Conditional request headers (RFC 9110, 13). Files have no entity tags, only a modification time in whole seconds.
 */
export interface Conditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
  readonly ifModifiedSince?: string | undefined
  readonly ifUnmodifiedSince?: string | undefined
  readonly ifRange?: string | undefined
}

export type ConditionResult = 'send' | 'not_modified' | 'failed'

export function evaluateConditions(conditions: Conditions, modifiedMs: number): ConditionResult {
  const { ifMatch, ifNoneMatch } = conditions
  const unmodifiedSince = seconds(conditions.ifUnmodifiedSince)
  const modified = Math.floor(modifiedMs / 1000)
  if (ifMatch !== undefined) {
    if (ifMatch.trim() !== '*') return 'failed'
  } else if (unmodifiedSince !== undefined && modified > unmodifiedSince) return 'failed'
  if (ifNoneMatch !== undefined) return ifNoneMatch.trim() === '*' ? 'not_modified' : 'send'
  const modifiedSince = seconds(conditions.ifModifiedSince)
  return modifiedSince !== undefined && modified <= modifiedSince ? 'not_modified' : 'send'
}

/** Whether to honor a Range header: not if the file changed since the client fetched the rest of it. */
export function allowsRange({ ifRange }: Conditions, modifiedMs: number): boolean {
  return ifRange === undefined || seconds(ifRange) === Math.floor(modifiedMs / 1000)
}

/** Returns undefined for an invalid date; the RFC says to ignore such a header. */
function seconds(date: string | undefined): number | undefined {
  if (date === undefined || !/^[A-Z][a-z]{2}/.test(date)) return undefined
  const ms = Date.parse(date)
  return Number.isNaN(ms) ? undefined : ms / 1000
}
