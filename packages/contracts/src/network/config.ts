import { z } from 'zod'
import { byteLength, Text } from '../schemas/text.ts'

/** The network of a sandbox: what may leave it, and how it is reached. What the entries mean is checked behind here. */

const mostEntries = 10_000

const Destinations = z.array(z.string().max(1024)).max(mostEntries)

/** RFC 1929 has one byte for the length of each. */
const mostBytes = 255

const Credential = Text.max(mostBytes).refine((text) => byteLength(text) <= mostBytes, {
  error: `must be at most ${mostBytes} bytes`,
})

const EgressProxy = z
  .object({
    address: z.string().describe('`host:port` of a SOCKS5 proxy'),
    username: Credential.optional(),
    password: Credential.optional().describe('Never returned; needs a username'),
  })
  .meta({ id: 'SandboxEgressProxyConfig' })

const NetworkRule = z
  .object({
    transform: z.object({ headers: z.record(z.string(), z.string()).optional() }).optional(),
  })
  .meta({ id: 'SandboxNetworkRule' })

const egress = {
  allowOut: Destinations.optional().describe(
    'Addresses, ranges and domains (`example.com`, `*.example.com`) that may be reached, also where `denyOut` has ' +
      'them; domains need a `denyOut` of `0.0.0.0/0`',
  ),
  denyOut: Destinations.optional().describe('Addresses and ranges that may not be reached'),
  egressProxy: EgressProxy.nullish().describe('Takes the TCP connections that may leave'),
  rules: z
    .record(z.string(), z.array(NetworkRule))
    .optional()
    .describe(
      'Headers that are set on HTTP and HTTPS requests to a domain (`example.com`, `*.example.com`) on their way out; the ' +
        'longest that fits counts, and it allows nothing by itself. Every server there gets the values, so that `*.com` gives them to anybody. They are ' +
        'returned as `***`',
    ),
}

export const NetworkConfig = z
  .object({
    ...egress,
    allowPublicTraffic: z
      .boolean()
      .optional()
      .describe('False: ports are reached with the header `e2b-traffic-access-token` alone'),
    maskRequestHost: z
      .string()
      .optional()
      .describe('The Host that programs in the sandbox see; `${PORT}` stands for the port'),
    httpsPorts: z
      .array(z.int().min(1).max(65_535))
      .max(mostEntries)
      .optional()
      .describe('Ports on which the sandbox speaks TLS itself'),
  })
  .meta({ id: 'SandboxNetworkConfig' })

export type NetworkConfig = z.infer<typeof NetworkConfig>

export const NetworkUpdate = z
  .object({
    ...egress,
    allow_internet_access: z
      .boolean()
      .optional()
      .describe('False: as if `denyOut` were `0.0.0.0/0` alone'),
  })
  .meta({ id: 'SandboxNetworkUpdateConfig' })

export type NetworkUpdate = z.infer<typeof NetworkUpdate>
