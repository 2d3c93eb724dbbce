import { z } from 'zod'

const largestInt64 = 2n ** 63n - 1n

/** Unix time in a query. Values beyond 2^53 lose precision, which does not matter for times so far away. */
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
