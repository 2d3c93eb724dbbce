import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** Parses environment variables into a frozen value. Reports all mistakes at once. */
export function parseEnvironment<Shape extends z.ZodObject>(
  shape: Shape,
  env: Record<string, string | undefined>,
): Readonly<z.infer<Shape>> {
  const parsed = shape.safeParse(env)
  if (!parsed.success)
    throw new Error(
      `Invalid configuration in environment variables:\n${z.prettifyError(parsed.error)}`,
    )
  return Object.freeze(parsed.data)
}

/** Schema for `NAME_FILE`, the alternative to a secret variable `NAME`: reads the file and trims white space. */
export const secretFile = z.string().transform((path, context) => {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error
    context.addIssue(`cannot read the file ${path}: ${String(code)}`)
    return z.NEVER
  }
})
