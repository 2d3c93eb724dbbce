import { z } from 'zod'
import type { DeepReadonly } from '@atoll/kit/deep-readonly'
import { byteLength, Text } from '../schemas/text.ts'

/**
 * Network settings of a sandbox: egress rules and ingress. The schema checks only the form; the server validates the
 * entries.
 */

const maxEntries = 10_000

const Destinations = z.array(z.string().max(1024)).max(maxEntries)

/** RFC 1929 encodes each length in one byte. */
const maxBytes = 255

const Credential = Text.max(maxBytes).refine((text) => byteLength(text) <= maxBytes, {
  error: `must be at most ${maxBytes} bytes`,
})

const EgressProxy = z
  .object({
    address: z.string().describe('`host:port` of a SOCKS5 proxy'),
    username: Credential.optional(),
    password: Credential.optional().describe('Never returned; requires a username'),
  })
  .meta({ id: 'SandboxEgressProxyConfig' })

const NetworkRule = z
  .object({
    transform: z.object({ headers: z.record(z.string(), z.string()).optional() }).optional(),
  })
  .meta({ id: 'SandboxNetworkRule' })

const egress = {
  allowOut: Destinations.optional().describe(
    'Allowed addresses, CIDR ranges and domains (`example.com`, `*.example.com`); takes precedence over `denyOut`. ' +
      'Domains require a `denyOut` of `0.0.0.0/0`',
  ),
  denyOut: Destinations.optional().describe('Denied addresses and CIDR ranges'),
  egressProxy: EgressProxy.nullish().describe('Proxy for all allowed TCP connections'),
  rules: z
    .record(z.string(), z.array(NetworkRule))
    .optional()
    .describe(
      'Headers to set on HTTP and HTTPS requests to a domain (`example.com`, `*.example.com`); the longest match ' +
        'applies. A rule does not allow its domain. Every matching server receives the values, so `*.com` reveals them to anybody. Values are ' +
        'returned as `***`',
    ),
}

export const NetworkConfig = z
  .object({
    ...egress,
    allowPublicTraffic: z
      .boolean()
      .optional()
      .describe('False: requests to ports must carry the header `e2b-traffic-access-token`'),
    maskRequestHost: z
      .string()
      .optional()
      .describe('Host header that programs in the sandbox see; `${PORT}` is replaced by the port'),
    httpsPorts: z
      .array(z.int().min(1).max(65_535))
      .max(maxEntries)
      .optional()
      .describe('Ports on which the sandbox itself speaks TLS'),
  })
  .meta({ id: 'SandboxNetworkConfig' })

export type NetworkConfig = z.infer<typeof NetworkConfig>

/** Settings that a client sent, for code that only reads them. A `null` for the proxy has become undefined. */
export type NetworkSettings = DeepReadonly<WithoutNull<NetworkConfig>>

type WithoutNull<T> = { [Key in keyof T]: Exclude<T[Key], null> }

export const NetworkUpdate = z
  .object({
    ...egress,
    allow_internet_access: z
      .boolean()
      .optional()
      .describe('False: same as `denyOut` of only `0.0.0.0/0`'),
  })
  .meta({ id: 'SandboxNetworkUpdateConfig' })

export type NetworkUpdate = z.infer<typeof NetworkUpdate>
