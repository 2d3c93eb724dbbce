import { z } from 'zod'
import { loadApiConfig } from '@atoll/api/config'
import type { ApiConfig } from '@atoll/api/config'
import { loadEdgeConfig } from '@atoll/edge/config'
import type { EdgeConfig } from '@atoll/edge/config'
import { Fault } from '@atoll/kit/fault'
import { parseEnvironment } from '@atoll/kit/config'
import { loadNodeConfig } from '@atoll/node/config'
import type { NodeConfig } from '@atoll/node/config'
import { parseAddressList } from '@atoll/kit/address-list'
import { isUsableDashboardHost } from './dashboard/host.ts'
import { parseListenAddress } from './listen-address.ts'

const listenAddress = z.string().transform((text, context) => {
  const address = parseListenAddress(text)
  if (address) return address
  context.addIssue('must be host:port, [IPv6]:port or a port')
  return z.NEVER
})

const trustedProxies = z.string().transform((text, context) => {
  const list = parseAddressList(text)
  if ('has' in list) return list
  context.addIssue(`"${list.invalid}" must be an address or a network such as 10.0.0.0/8`)
  return z.NEVER
})

const pemFile = z.string().startsWith('/', 'must be an absolute path')

export const ServerEnv = z.object({
  ATOLL_LISTEN: listenAddress
    .prefault('127.0.0.1:3000')
    .describe(
      'Address of the platform API, and of sandbox traffic unless ATOLL_EDGE_LISTEN is set.',
    ),
  ATOLL_EDGE_LISTEN: listenAddress
    .optional()
    .describe('Address for sandbox traffic. Default: the address of the API.'),
  ATOLL_DATA_DIR: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .default('/var/lib/atoll')
    .describe('Directory for all data. Only one server at a time can use it.'),
  ATOLL_DOMAIN: z
    .string()
    .toLowerCase()
    .regex(/^[a-z0-9.-]+(:[0-9]{1,5})?$/, 'must be a host name, with a port if need be')
    .optional()
    .describe(
      'Domain of the host names {port}-{sandboxID} of sandboxes, with a port unless clients use the default port. With it, host names of other domains are refused, except localhost. Default: localhost with the port of the server.',
    ),
  ATOLL_TLS_CERT_FILE: pemFile
    .optional()
    .describe(
      'PEM file with the certificate for *.ATOLL_DOMAIN, then those of its issuers. Turns on HTTPS. Read again when it changes. Default: a certificate of the local CA, if atoll tls local has created one.',
    ),
  ATOLL_TLS_KEY_FILE: pemFile
    .optional()
    .describe('PEM file with the key of ATOLL_TLS_CERT_FILE, not encrypted.'),
  ATOLL_TLS_LISTEN: listenAddress
    .optional()
    .describe(
      'Address for HTTPS: API, sandboxes and dashboard. Default: 127.0.0.1 with the port of ATOLL_DOMAIN, or 443.',
    ),
  ATOLL_TRUSTED_PROXIES: trustedProxies
    .optional()
    .describe(
      'Addresses and networks of reverse proxies, comma separated, whose X-Forwarded-* headers are believed. They are exempt from ATOLL_MAX_CONNECTIONS_PER_CLIENT.',
    ),
  ATOLL_DASHBOARD_HOST: z
    .string()
    .toLowerCase()
    .refine((name) => name === 'off' || isUsableDashboardHost(name), {
      error:
        'must be off, or a host name with a dot that is no address and begins neither with "sandbox." nor with a number and "-"',
    })
    .optional()
    .describe(
      'The host name of the dashboard, on the port of the API. Nothing else is served under it. off: no dashboard. Default: ui.localhost, or ui.ATOLL_DOMAIN if HTTPS is on.',
    ),
  ATOLL_MAX_CONNECTIONS: z.coerce
    .number()
    .int()
    .min(1)
    .optional()
    .describe(
      'Maximum number of open client connections. Default: seven sixteenths of the open-file limit of the process (ulimit -n), at most 16384, or 5000 with HTTPS.',
    ),
  ATOLL_MAX_CONNECTIONS_PER_CLIENT: z.coerce
    .number()
    .int()
    .min(1)
    .optional()
    .describe(
      'Maximum number of open connections per client: an IPv4 address or an IPv6 /64 network. Loopback is exempt. Default: an eighth of ATOLL_MAX_CONNECTIONS.',
    ),
  ATOLL_LOG: z
    .enum(['file', 'stdout'])
    .default('file')
    .describe('Destination of logs: DATA_DIR/logs/server.log, or standard output as JSON lines.'),
  ATOLL_LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('Lowest level of events that are logged.'),
})

export interface ServerConfig {
  readonly server: Readonly<z.infer<typeof ServerEnv>>
  readonly api: ApiConfig
  readonly node: NodeConfig
  readonly edge: EdgeConfig
}

/** Loads the configuration of the server and all its parts. Reports all mistakes at once. */
export function loadServerConfig(env: Record<string, string | undefined>): ServerConfig {
  const mistakes = new Set<string>()
  const attempt = <Config>(load: (from: typeof env) => Config): Config | undefined => {
    try {
      return load(env)
    } catch (error) {
      const [, ...lines] = String(error).split('\n')
      mistakes.add(lines.join('\n'))
      return undefined
    }
  }
  const server = attempt((from) => checkCombinations(parseEnvironment(ServerEnv, from)))
  const api = attempt(loadApiConfig)
  const node = attempt(loadNodeConfig)
  const edge = attempt(loadEdgeConfig)
  if (!server || !api || !node || !edge) {
    const text = `The configuration is refused\n${[...mistakes].join('\n')}`
    throw new Fault('invalid', 'configuration_refused', text)
  }
  return Object.freeze({ server, api, node, edge })
}

/** Checks settings that need each other. */
function checkCombinations<Settings extends z.infer<typeof ServerEnv>>(
  settings: Settings,
): Settings {
  const { ATOLL_DOMAIN, ATOLL_TLS_CERT_FILE, ATOLL_TLS_KEY_FILE, ATOLL_TLS_LISTEN } = settings
  const hasFile = ATOLL_TLS_CERT_FILE !== undefined || ATOLL_TLS_KEY_FILE !== undefined
  const hostName = ATOLL_DOMAIN?.split(':', 1)[0]
  const dashboardHost = settings.ATOLL_DASHBOARD_HOST
  const mistakes = [
    hasFile &&
      (ATOLL_TLS_CERT_FILE === undefined || ATOLL_TLS_KEY_FILE === undefined) &&
      'ATOLL_TLS_CERT_FILE and ATOLL_TLS_KEY_FILE need each other',
    (hasFile || ATOLL_TLS_LISTEN !== undefined) &&
      ATOLL_DOMAIN === undefined &&
      'HTTPS needs a domain: set ATOLL_DOMAIN',
    hostName !== undefined &&
      (dashboardHost === hostName || dashboardHost === `api.${hostName}`) &&
      `ATOLL_DASHBOARD_HOST must not be ${dashboardHost}, which serves the API`,
  ].filter((mistake) => mistake !== false)
  if (mistakes.length > 0) throw new Error(['', ...mistakes.map((text) => `✖ ${text}`)].join('\n'))
  return settings
}
