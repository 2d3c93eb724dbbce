/**
 * The conditions under which a client wants a file (RFC 9110, 13). Files have no entity tags here, only a time of
 * change in whole seconds.
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

/** Whether a range may be sent: not of a file that is no longer the one that the client has the rest of. */
export function allowsRange({ ifRange }: Conditions, modifiedMs: number): boolean {
  return ifRange === undefined || seconds(ifRange) === Math.floor(modifiedMs / 1000)
}

/** Undefined for what is no date: then the header is as if it were absent. */
function seconds(date: string | undefined): number | undefined {
  if (date === undefined || !/^[A-Z][a-z]{2}/.test(date)) return undefined
  const ms = Date.parse(date)
  return Number.isNaN(ms) ? undefined : ms / 1000
}
