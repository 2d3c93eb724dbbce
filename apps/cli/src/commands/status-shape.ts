import { z } from 'zod'

const Kept = z.object({ count: z.int(), diskBytes: z.int() })

/** Output of `atoll status --json`. */
export const Status = z
  .object({
    server: z.enum(['up', 'down']),
    apiUrl: z.string(),
    sandboxUrl: z.string(),
    problem: z.string().optional().describe('Why the server is down, or why the rest is unknown'),
    sandboxes: z.object({ running: z.int(), paused: z.int() }).optional(),
    ready: z
      .record(z.string(), z.int())
      .optional()
      .describe('Pre-warmed sandboxes by template; of a local server only'),
    disk: z
      .object({ paused: Kept, snapshots: Kept })
      .optional()
      .describe('Disk use of paused sandboxes and snapshots of all teams; of a local server only'),
    quarantined: z
      .array(z.object({ kind: z.string(), path: z.string(), reason: z.string() }))
      .readonly()
      .optional()
      .describe('Unreadable records, whose files are kept; of a local server only'),
    space: z
      .object({
        totalBytes: z.int(),
        freeBytes: z.int(),
        reserveBytes: z.int(),
        freeInodes: z.int(),
        level: z.enum(['roomy', 'shared', 'scarce', 'full']),
      })
      .optional()
      .describe('Free space of the data file system; of a local server only'),
  })
  .meta({ id: 'Status' })

export type StatusReport = z.infer<typeof Status>
