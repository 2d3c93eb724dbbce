import { z } from 'zod'

/** The body of every failure of the platform API. Clients decide by `code`, so it is never left out. */
export const ErrorBody = z
  .object({
    code: z.int32().describe('The HTTP status'),
    message: z.string().describe('What went wrong and what to do about it'),
    error_code: z.string().optional().describe('A stable name of the cause, where there is one'),
  })
  .meta({ id: 'Error' })

export type ErrorBody = z.infer<typeof ErrorBody>

/** Reasons that clients know by name: a fault with one of these carries it as `error_code`. */
export const publishedReasons = [
  'disk_full',
  'internal_server_error',
  'memory_not_kept',
  'sandbox_capacity_unavailable',
  'sandbox_create_failed',
  'sandbox_filesystem_boot_unconfirmed',
  'sandbox_paused',
  'sandbox_placement_timeout',
  'sandbox_start_in_flight',
] as const
