import { z } from 'zod'

/** Query parameters of all paged lists. */
export const PageQuery = {
  limit: z
    .string()
    .regex(/^[0-9]{1,9}$/, { error: 'must be an integer from 1 to 100' })
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 100, { error: 'must be an integer from 1 to 100' })
    .default(100)
    .describe('Maximum number of items, 1 to 100'),
  nextToken: z.string().optional().describe('X-Next-Token of the previous page'),
}
