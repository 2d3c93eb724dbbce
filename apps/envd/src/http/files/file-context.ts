/** User and path resolution of a file request. */
import { Fault } from '@atoll/kit/fault'
import { resolvePath } from '../../domain/files/path.ts'
import type { Settings } from '../../domain/sandbox/settings.ts'
import type { User, Users } from '../../domain/access/user.ts'
import { unknownUserMessage } from '../access/acting-user.ts'
import type { ActingUser } from '../access/acting-user.ts'

export interface FileContext {
  readonly user: User
  resolve(path: string): string
}

/** Uses the user in the query or body, else in the Authorization header, else the default user. */
export async function openFileContext(
  parts: { readonly users: Users; readonly settings: Settings; readonly acting: ActingUser },
  username: string | undefined,
): Promise<FileContext> {
  const { settings, acting, users } = parts
  const user =
    !username && acting.kind === 'known'
      ? acting.user
      : await findUser(users, username || settings.defaultUser)
  const from = { home: user.home, workdir: settings.defaultWorkdir }
  return { user, resolve: (path) => resolvePath(path, from) }
}

async function findUser(users: Users, name: string): Promise<User> {
  const user = await users.find(name)
  if (user) return user
  throw new Fault('unauthenticated', 'unknown_user', unknownUserMessage(name))
}
