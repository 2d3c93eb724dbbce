import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** Parses the environment into a frozen value; reports all mistakes at once. */
export function parseEnvironment<Shape extends z.ZodObject>(
  shape: Shape,
  env: Record<string, string | undefined>,
): Readonly<z.infer<Shape>> {
  const parsed = shape.safeParse(env)
  if (!parsed.success) throw new Error(`configuration refused\n${z.prettifyError(parsed.error)}`)
  return Object.freeze(parsed.data)
}

/** For `NAME_FILE`, beside a secret `NAME`: names a file, gives what is in it without the white space around. */
export const secretFile = z.string().transform((path, context) => {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error
    context.addIssue(`${path} cannot be read: ${String(code)}`)
    return z.NEVER
  }
})
