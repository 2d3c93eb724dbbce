import { z } from 'zod'
import { NetworkConfig } from '../network/config.ts'
import { Timestamp } from '../schemas/text.ts'

/** Sandboxes as the platform API returns them. Unset properties are left out, never null. */

/** Deprecated but still required: clients expect this constant. */
export const clientId = '6532622b'

const domain = z
  .string()
  .describe('Domain of the host names {port}-{sandboxID}, if the server has one (ATOLL_DOMAIN)')

export const Sandbox = z
  .object({
    templateID: z.string(),
    sandboxID: z.string(),
    clientID: z.string().meta({ deprecated: true }),
    envdVersion: z.string(),
    alias: z.string().optional(),
    envdAccessToken: z.string().optional(),
    trafficAccessToken: z.string().optional(),
    domain: domain.optional(),
  })
  .meta({ id: 'Sandbox' })

export const SandboxState = z.enum(['running', 'paused']).meta({ id: 'SandboxState' })

/** Ended sandboxes are listed for a week, if a query asks for them. */
export const ListedState = z
  .enum([...SandboxState.options, 'ended'])
  .meta({ id: 'ListedSandboxState' })

export const SandboxParent = z
  .object({
    sandboxID: z.string().describe('It may have ended since'),
    kind: z.enum(['fork', 'snapshot']).describe('`snapshot`: created from a snapshot of it'),
  })
  .describe(
    'Sandbox of the team that this one is a copy of. Absent: it was created from a template',
  )
  .meta({ id: 'SandboxParent' })

const listed = {
  templateID: z.string(),
  sandboxID: z.string(),
  clientID: z.string().meta({ deprecated: true }),
  alias: z.string().optional(),
  startedAt: Timestamp,
  endAt: Timestamp,
  cpuCount: z.int32().min(1),
  memoryMB: z.int32().min(128),
  diskSizeMB: z.int32().min(0),
  metadata: z.record(z.string(), z.string()).optional(),
  envdVersion: z.string(),
}

export const ListedSandbox = z
  .object({
    ...listed,
    state: ListedState,
    endedAt: Timestamp.optional().describe('Only for ended sandboxes'),
    endReason: z.string().optional().describe('Why the sandbox ended, such as `ran out of memory`'),
  })
  .meta({ id: 'ListedSandbox' })

export const SandboxDetail = z
  .object({
    ...listed,
    state: SandboxState,
    envdAccessToken: z.string().optional(),
    allowInternetAccess: z.boolean().optional(),
    domain: domain.optional(),
    network: NetworkConfig.optional(),
    parent: SandboxParent.optional(),
    lifecycle: z.object({ autoResume: z.boolean(), onTimeout: z.enum(['kill', 'pause']) }),
  })
  .meta({ id: 'SandboxDetail' })
