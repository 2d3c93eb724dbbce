/** The user that a request acts as: the one in the Basic Authorization header, or the default user of the sandbox. */
import { basicUser } from '../../domain/access/access.ts'
import type { User, Users } from '../../domain/access/user.ts'

export type ActingUser =
  | { readonly kind: 'default' }
  | { readonly kind: 'known'; readonly user: User }
  | { readonly kind: 'unknown'; readonly name: string }

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
