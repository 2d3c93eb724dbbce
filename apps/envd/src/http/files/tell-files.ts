import { cut } from '../../domain/sandbox/log.ts'
import type { Log } from '../../domain/sandbox/log.ts'
import type { FileCall } from './file-call.ts'

/** Every path that a call asks for is resolved once, and so told once: which it is and who asked, not what is in it. */
export function tellFiles(log: Log, operation: string, { user, resolve }: FileCall): FileCall {
  return {
    user,
    resolve(path) {
      const resolved = resolve(path)
      const told = cut(resolved, pathLimit)
      log.write('debug', `${operation} ${told}`, { logger: 'files', path: told, user: user.name })
      return resolved
    },
  }
}

const pathLimit = 1024
