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
