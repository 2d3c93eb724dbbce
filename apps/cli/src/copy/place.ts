import { UsageError } from '../failure.ts'

/** Argument of `sandbox cp`: a path in a sandbox, a local path, or `-` for stdin and stdout. */
export type Place =
  | { readonly kind: 'sandbox'; readonly sandboxId: string; readonly path: string }
  | { readonly kind: 'local'; readonly path: string }
  | { readonly kind: 'stdio' }

export function parsePlace(text: string): Place {
  if (text === '-') return { kind: 'stdio' }
  if (text === '' || text.includes('\0')) throw new UsageError('A path is empty.')
  const [, sandboxId, path = ''] = /^([a-z0-9]+):([^]*)$/.exec(text) ?? []
  if (sandboxId === undefined) return { kind: 'local', path: text }
  if (path === '') {
    throw new UsageError(
      `${text} has no path: write ${sandboxId}:/path, or ${sandboxId}:. for its home.`,
    )
  }
  return { kind: 'sandbox', sandboxId, path }
}
