import { z } from 'zod'

/** Text that every store and every wire format can carry: well-formed Unicode without NUL. */
export const Text = z.string().refine((text) => text.isWellFormed() && !text.includes('\0'), {
  error: 'must be well-formed Unicode without NUL characters',
})

export const Timestamp = z.iso.datetime({ offset: true })

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length
}
