import { posix } from 'node:path'
import { Fault } from '@atoll/kit/fault'

/**
 * Resolves a path from a request. An empty path means the default working directory; a relative path starts at the
 * home of the acting user. An absolute path is not normalized.
 */
export function resolvePath(
  path: string,
  from: { readonly home: string; readonly workdir?: string | undefined },
): string {
  if (path === '') return from.workdir || from.home
  if (path === '~') return from.home
  if (path.startsWith('~/')) return posix.join(from.home, path.slice(2))
  if (path.startsWith('~')) {
    throw new Fault(
      'invalid',
      'bad_path',
      `'${path}' is invalid: ~ works only for your own home. Use an absolute path.`,
    )
  }
  return path.startsWith('/') ? path : posix.join(from.home, path)
}
