import { Fault } from '@atoll/kit/fault'

/** Rejects unsupported fields: ignoring a requested restriction would make the sandbox unsafe. */
export function refuseFields(usage: Readonly<Record<string, boolean>>): void {
  const fields = Object.keys(usage).filter((field) => usage[field])
  if (fields.length === 0) return
  throw new Fault(
    'invalid',
    'not_supported_yet',
    `Not supported yet: ${fields.join(', ')}. Leave ${fields.length === 1 ? 'it' : 'them'} out`,
  )
}

export function isFilled(value: object | undefined): boolean {
  return value !== undefined && Object.keys(value).length > 0
}
