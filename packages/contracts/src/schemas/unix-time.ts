import { z } from 'zod'

const largestInt64 = 2n ** 63n - 1n

/** A time in a query, as a number. Those so far away that a number is not exact are all the same to us. */
export const unixTime = (unit: 'seconds' | 'milliseconds', description: string) =>
  z
    .string()
    .regex(/^[0-9]+$/, {
      error: `must be an integer of 0 or more, in Unix ${unit}`,
      abort: true,
    })
    .refine((text) => text.length < 20 && BigInt(text) <= largestInt64, {
      error: 'must fit into 64 bits',
    })
    .transform(Number)
    .optional()
    .meta({ type: 'integer', format: 'int64', minimum: 0, description })
