import type { User } from '../access/user.ts'

export type Variables = Readonly<Record<string, string>>

/**
 * Builds the environment of a new process. Nothing but PATH comes from envd's own environment; later entries win,
 * so the request can override all others.
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
