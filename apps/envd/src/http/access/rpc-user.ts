/** The user that an RPC acts as. */
import { Code, ConnectError, createContextKey } from '@connectrpc/connect'
import type { Settings } from '../../domain/sandbox/settings.ts'
import type { User, Users } from '../../domain/access/user.ts'
import { unknownUserMessage } from './acting-user.ts'
import type { ActingUser } from './acting-user.ts'

export const actingUserKey = createContextKey<ActingUser>({ kind: 'default' })

/** Every RPC rejects an unknown user, even if it does not act as a user. */
export function requireKnownUser(acting: ActingUser): void {
  if (acting.kind === 'unknown') refuse(unknownUserMessage(acting.name))
}

export async function resolveUser(
  acting: ActingUser,
  users: Users,
  settings: Settings,
): Promise<User> {
  if (acting.kind === 'known') return acting.user
  const name = acting.kind === 'unknown' ? acting.name : settings.defaultUser
  return (await users.find(name)) ?? refuse(unknownUserMessage(name))
}

function refuse(message: string): never {
  throw new ConnectError(message, Code.Unauthenticated)
}
