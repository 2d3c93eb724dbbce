/** The user on whose behalf a request acts: the one named by Basic authorization, or the default of the sandbox. */
import { Code, ConnectError, createContextKey } from '@connectrpc/connect'
import type { Settings } from '../domain/settings.ts'
import { basicUser } from '../domain/access.ts'
import type { User, Users } from '../domain/user.ts'

export type ActingUser =
  | { readonly kind: 'default' }
  | { readonly kind: 'known'; readonly user: User }
  | { readonly kind: 'unknown'; readonly name: string }

export const actingUserKey = createContextKey<ActingUser>({ kind: 'default' })

export async function actingUser(
  users: Users,
  authorization: string | undefined,
): Promise<ActingUser> {
  const name = basicUser(authorization)
  if (name === undefined) return { kind: 'default' }
  const user = await users.find(name)
  return user ? { kind: 'known', user } : { kind: 'unknown', name }
}

export function unknownUserMessage(name: string): string {
  return `There is no user '${name}' in this sandbox`
}

/** Every RPC refuses an unknown user, also those that do not act as one. */
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
