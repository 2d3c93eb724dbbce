import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Timestamp } from '../schemas/text.ts'
import { SandboxParams } from './manage.ts'

export const TimelineEvent = z
  .object({
    at: Timestamp,
    kind: z
      .enum(['created', 'paused', 'resumed', 'copied', 'forked', 'ended'])
      .describe('`copied`: a snapshot was made, also for forks. `forked`: a fork was created'),
    sandboxID: z.string().optional().describe('The fork'),
    reason: z.string().optional().describe('Why the sandbox ended'),
  })
  .meta({ id: 'SandboxTimelineEvent' })

export const getSandboxTimeline = defineOperation({
  id: 'sandbox.timeline',
  summary: 'List the starts, pauses, copies and forks of a sandbox, and its end',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/timeline',
  auth: 'team',
  params: SandboxParams,
  replies: {
    200: {
      description: 'Oldest first, also for ended sandboxes; the newest 200 of each kind',
      body: z.object({ events: z.array(TimelineEvent) }).meta({ id: 'SandboxTimeline' }),
    },
  },
  errors: [400, 401, 404, 500],
})
