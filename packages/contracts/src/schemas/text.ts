import { z } from 'zod'

/** Text that every store and wire format can hold: well-formed Unicode without NUL. */
export const Text = z.string().refine((text) => text.isWellFormed() && !text.includes('\0'), {
  error: 'must be well-formed Unicode without NUL characters',
})

export const Timestamp = z.iso.datetime({ offset: true })

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length
}
