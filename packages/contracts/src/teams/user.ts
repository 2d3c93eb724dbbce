import { z } from 'zod'

/** Who made something. */
export const TeamUser = z
  .object({ id: z.uuid(), email: z.string().nullable() })
  .meta({ id: 'TeamUser' })
