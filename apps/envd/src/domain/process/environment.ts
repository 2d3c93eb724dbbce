import type { User } from '../access/user.ts'

export type Variables = Readonly<Record<string, string>>

/**
 * The environment of a new process. It starts clean, nothing of the daemon's own environment but PATH goes in; what
 * comes later wins. The request itself may override everything, even what the platform sets.
 */
export function buildEnvironment(parts: {
  readonly path: string
  readonly user: User
  readonly globals: Variables
  readonly request: Variables
}): Variables {
  const { path, user, globals, request } = parts
  return Object.fromEntries([
    ['PATH', path],
    ['HOME', user.home],
    ['USER', user.name],
    ['LOGNAME', user.name],
    ...Object.entries(globals),
    ...Object.entries(request),
  ])
}
