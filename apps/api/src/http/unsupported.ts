import { Fault } from '@atoll/kit/fault'

/** What cannot be honoured yet is refused: a sandbox without the wanted restriction would be a trap. */
export function refuseFields(asked: Readonly<Record<string, boolean>>): void {
  const fields = Object.keys(asked).filter((field) => asked[field])
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
