import { Fault } from '@atoll/kit/fault'

/** HTTP status of an answer of the store; undefined for other errors. */
export function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined
  const { $metadata: metadata } = error
  if (typeof metadata !== 'object' || metadata === null) return undefined
  const { httpStatusCode } = metadata as { readonly httpStatusCode?: unknown }
  return typeof httpStatusCode === 'number' ? httpStatusCode : undefined
}

/** Faults of ours pass. The message names neither bucket nor address: users of the API may see it. */
export function asObjectFault(error: unknown): Error {
  if (error instanceof Fault) return error
  if (error instanceof Error && error.name === 'AbortError') return error
  const status = statusOf(error)
  const reason = error instanceof Error ? error.name : 'unknown error'
  const shown = status === undefined ? reason : `${reason}, status ${status}`
  return new Fault(
    'unavailable',
    'objects_unavailable',
    `The object store does not work (${shown}): ${adviceFor(status)}`,
    { cause: error },
  )
}

function adviceFor(status: number | undefined): string {
  if (status === 401 || status === 403)
    return 'ask an operator to check the access key of the nodes'
  if (status === 404) return 'ask an operator to check the bucket of the nodes'
  return 'try again later'
}
