import { truncate } from '../../domain/sandbox/log.ts'
import type { Log } from '../../domain/sandbox/log.ts'
import type { FileContext } from './file-context.ts'

/** Logs each path that a request resolves, with operation and user, but never file contents. */
export function logFileAccess(
  log: Log,
  operation: string,
  { user, resolve }: FileContext,
): FileContext {
  return {
    user,
    resolve(path) {
      const resolved = resolve(path)
      const logged = truncate(resolved, pathLimit)
      log.write('debug', `${operation} ${logged}`, {
        logger: 'files',
        path: logged,
        user: user.name,
      })
      return resolved
    },
  }
}

const pathLimit = 1024
