import { z } from 'zod'

/**
 * What the platform answers, as far as our own callers read it. Unknown properties pass unread: a newer
 * server may send more.
 */

export const SandboxState = z.enum(['running', 'paused'])
export type SandboxState = z.infer<typeof SandboxState>

/** The reply to create and connect. */
export const ConnectedSandbox = z.object({
  sandboxID: z.string(),
  templateID: z.string(),
  envdVersion: z.string(),
  alias: z.string().optional(),
  envdAccessToken: z.string().optional(),
  trafficAccessToken: z.string().nullish(),
  domain: z.string().nullish(),
})
export type ConnectedSandbox = z.infer<typeof ConnectedSandbox>

export const ListedSandbox = z.object({
  sandboxID: z.string(),
  templateID: z.string(),
  alias: z.string().optional(),
  state: SandboxState,
  startedAt: z.iso.datetime({ offset: true }),
  endAt: z.iso.datetime({ offset: true }),
  cpuCount: z.number(),
  memoryMB: z.number(),
  diskSizeMB: z.number(),
  envdVersion: z.string(),
  metadata: z.record(z.string(), z.string()).optional(),
})
export type ListedSandbox = z.infer<typeof ListedSandbox>

export const SandboxDetail = ListedSandbox.extend({
  envdAccessToken: z.string().optional(),
  domain: z.string().nullish(),
})
export type SandboxDetail = z.infer<typeof SandboxDetail>

export const ApiKey = z.object({
  id: z.string(),
  name: z.string(),
  mask: z.object({
    prefix: z.string(),
    valueLength: z.number(),
    maskedValuePrefix: z.string(),
    maskedValueSuffix: z.string(),
  }),
  createdAt: z.string(),
  lastUsed: z.string().nullish(),
})
export type ApiKey = z.infer<typeof ApiKey>

/** Only here is the key itself sent; the server keeps a hash of it. */
export const CreatedApiKey = ApiKey.extend({ key: z.string() })
export type CreatedApiKey = z.infer<typeof CreatedApiKey>

export const ErrorBody = z.object({
  code: z.number().optional(),
  message: z.string(),
  error_code: z.string().optional(),
})
