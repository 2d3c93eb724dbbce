import { z } from 'zod'

/** User who created a resource. */
export const TeamUser = z
  .object({ id: z.uuid(), email: z.string().nullable() })
  .meta({ id: 'TeamUser' })
