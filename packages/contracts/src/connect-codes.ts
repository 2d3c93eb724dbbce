import type { FaultKind } from '@atoll/kit/fault'
import { Code } from '@connectrpc/connect'

/** Connect code of each kind of fault, in all internal services. */
export const connectCodes = {
  invalid: Code.InvalidArgument,
  unauthenticated: Code.Unauthenticated,
  forbidden: Code.PermissionDenied,
  not_found: Code.NotFound,
  conflict: Code.AlreadyExists,
  exhausted: Code.ResourceExhausted,
  timeout: Code.DeadlineExceeded,
  unavailable: Code.Unavailable,
  internal: Code.Internal,
} as const satisfies Record<FaultKind, Code>
