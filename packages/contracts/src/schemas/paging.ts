import { z } from 'zod'

/** The query parameters of every list that comes in pages. */
export const PageQuery = {
  limit: z
    .string()
    .regex(/^[0-9]{1,9}$/, { error: 'must be an integer from 1 to 100' })
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 100, { error: 'must be an integer from 1 to 100' })
    .default(100)
    .describe('How many at most: 1 to 100'),
  nextToken: z.string().optional().describe('The X-Next-Token of the page before'),
}
