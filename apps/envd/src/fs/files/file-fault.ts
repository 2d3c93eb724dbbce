import { Fault } from '@atoll/kit/fault'
import { diskFull } from '../../domain/files/regular-file.ts'

/** Translates a system error about a path into a fault. */
export function fileFault(thrown: unknown, path: string): unknown {
  if (!(thrown instanceof Error) || thrown instanceof Fault) return thrown
  const { code = '', errno } = thrown as NodeJS.ErrnoException
  const options = { cause: thrown }
  if (code === 'ENOENT') {
    return new Fault('not_found', 'file_not_found', `'${path}' does not exist`, options)
  }
  if (code === 'ENOSPC' || errno === quotaExceeded) {
    return new Fault(
      'exhausted',
      diskFull,
      `The disk is full, so '${path}' was not written. Delete files to free space.`,
      options,
    )
  }
  const mistake = mistakes.get(code)
  if (mistake) return new Fault('invalid', 'bad_path', `'${shorten(path)}' ${mistake}`, options)
  return errno === undefined
    ? thrown
    : new Fault('internal', 'file_failed', `Access to '${path}' failed: ${thrown.message}`, options)
}

/** EDQUOT, which Node.js does not name. */
const quotaExceeded = -122

const mistakes = new Map([
  ['EISDIR', 'is a directory'],
  ['ENXIO', 'is not a regular file'],
  ['ENAMETOOLONG', 'exceeds the maximum path length'],
  ['ERR_INVALID_ARG_VALUE', 'contains a NUL byte, which paths cannot'],
])

function shorten(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path
}
