import { z } from 'zod'

/** Body of every error response of the platform API. Clients depend on `code`, so it is always present. */
export const ErrorBody = z
  .object({
    code: z.int32().describe('The HTTP status'),
    message: z.string().describe('What failed, why and what to do'),
    error_code: z.string().optional().describe('Stable name of the cause, if there is one'),
  })
  .meta({ id: 'Error' })

export type ErrorBody = z.infer<typeof ErrorBody>

/** Fault reasons that are published to clients as `error_code`. */
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
