import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'

const shownIssues = 3

/** Parses one part of a request. The fault names the field and the problem. */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  part: 'path' | 'query' | 'body',
): z.output<Schema> {
  const parsed = schema.safeParse(value, {
    error: (issue) => (issue.input === undefined ? missing(part) : undefined),
  })
  if (parsed.success) return parsed.data
  const texts = parsed.error.issues.slice(0, shownIssues).map((issue) => describe(issue, part))
  throw new Fault('invalid', 'invalid_request', `validation error: ${texts.join('; ')}`)
}

function missing(part: string): string {
  return part === 'body' ? 'is required: add it to the JSON body' : 'is required'
}

function describe(issue: z.core.$ZodIssue, part: string): string {
  const field = [part, ...issue.path].map(String).join('.').slice(0, 200)
  // The message for an invalid map key is nested one level deeper.
  const message = issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined
  return `${field}: ${(message ?? issue.message).replace(/^Invalid input: /, '')}`
}
