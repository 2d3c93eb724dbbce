import { Fault } from '@atoll/kit/fault'

/** `field` is the name of the field in the request. */
export function invalid(field: string, text: string): Fault {
  return new Fault('invalid', 'invalid_network', `${field}: ${text}`)
}

export function quote(text: string | undefined): string {
  return JSON.stringify((text ?? '').slice(0, 200))
}
