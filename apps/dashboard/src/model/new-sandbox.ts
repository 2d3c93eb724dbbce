import { parseDuration } from './format.ts'
import { parseEntries, parsePairs } from './pairs.ts'

export interface NewSandboxForm {
  readonly template: string
  readonly timeout: string
  readonly onTimeout: string
  readonly internet: string
  readonly allowed: string
  readonly variables: string
  readonly metadata: string
}

/** Returns the body of `POST /v2/sandboxes`. Throws an error for the person who filled in the form. */
export function toCreateRequest(form: NewSandboxForm) {
  const timeout = parseDuration(form.timeout)
  if (timeout === undefined)
    throw new Error('The timeout must be a number of seconds, or like 90s, 10m, 2h')
  const envVars = pairsOf(form.variables, 'Environment variables')
  const metadata = pairsOf(form.metadata, 'Metadata')
  return {
    templateID: form.template.trim(),
    timeout,
    ...(form.onTimeout === 'pause' && { autoPause: true }),
    ...(form.internet === 'none' && { allow_internet_access: false }),
    ...(form.internet === 'some' && {
      network: { allowOut: parseEntries(form.allowed), denyOut: ['0.0.0.0/0'] },
    }),
    ...(envVars && { envVars }),
    ...(metadata && { metadata }),
  }
}

function pairsOf(text: string, name: string): Record<string, string> | undefined {
  const parsed = parsePairs(text)
  if ('mistake' in parsed) throw new Error(`${name}: ${parsed.mistake}`)
  return Object.keys(parsed.pairs).length > 0 ? parsed.pairs : undefined
}
