import type { Fault, FaultKind } from '@atoll/kit/fault'
import { diskFull } from '../../domain/files/regular-file.ts'

/** A full disk has its own status, 507, which clients check for. */
export function httpStatusOf(fault: Fault): number {
  return fault.reason === diskFull ? 507 : httpStatus[fault.kind]
}

const httpStatus = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  exhausted: 429,
  timeout: 504,
  unavailable: 503,
  internal: 500,
} as const satisfies Record<FaultKind, number>
