import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { SandboxParams } from '../sandboxes/manage.ts'
import { Timestamp } from '../schemas/text.ts'

/** Outgoing connections of a sandbox, allowed and denied. */

export const SandboxConnection = z
  .object({
    name: z
      .string()
      .optional()
      .describe('TLS server name, HTTP Host or DNS question. Absent: only the address decided'),
    address: z.string().optional().describe('Absent for DNS questions'),
    port: z.int(),
    protocol: z
      .enum(['tcp', 'udp', 'dns'])
      .describe('`dns`: a question for a name that the rules do not allow'),
    verdict: z.enum(['allowed', 'denied']),
    count: z.int(),
    firstAt: Timestamp.optional().describe('Absent if only the firewall saw the connection'),
    lastAt: Timestamp,
    sentBytes: z
      .int()
      .optional()
      .describe('Bytes of closed connections. Absent if only the firewall saw the connection'),
    receivedBytes: z.int().optional(),
  })
  .meta({ id: 'SandboxConnection' })

export const listDeniedSandboxes = defineOperation({
  id: 'sandbox.listDenied',
  summary: 'List the running sandboxes that were denied a connection in the last hour',
  method: 'GET',
  path: '/sandboxes/denied',
  auth: 'team',
  replies: {
    200: {
      description: 'At most 100, newest denial first',
      body: z
        .object({
          sandboxes: z.array(
            z.object({ sandboxID: z.string(), lastAt: Timestamp.describe('Last denial') }),
          ),
        })
        .meta({ id: 'DeniedSandboxes' }),
    },
  },
  errors: [401, 500],
})

export const listSandboxConnections = defineOperation({
  id: 'sandbox.connections',
  summary: 'List the outgoing connections of a sandbox that were allowed or denied, newest first',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/connections',
  auth: 'team',
  params: SandboxParams,
  replies: {
    200: {
      description: 'At most 500; equal ones are merged. Empty while the sandbox is paused',
      body: z
        .object({ connections: z.array(SandboxConnection) })
        .meta({ id: 'SandboxConnections' }),
    },
  },
  errors: [400, 401, 404, 409, 500, 503],
})
