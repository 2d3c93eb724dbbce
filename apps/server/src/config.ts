import { isIP } from 'node:net'
import { z } from 'zod'
import { ApiEnv, loadApiConfig } from '@atoll/api/config'
import type { ApiConfig } from '@atoll/api/config'
import { EdgeEnv, loadEdgeConfig } from '@atoll/edge/config'
import type { EdgeConfig } from '@atoll/edge/config'
import { Fault } from '@atoll/kit/fault'
import { parseEnvironment } from '@atoll/kit/config'
import { isDomainName } from '@atoll/kit/domain-name'
import { NodeEnv, loadNodeConfig } from '@atoll/node/config'
import type { NodeConfig } from '@atoll/node/config'
import { parseAddressList } from '@atoll/kit/address-list'
import { isLoopback } from './client-address.ts'
import { FleetEnv, loadFleetConfig } from './fleet/config.ts'
import type { FleetConfig } from './fleet/config.ts'
import { isUsableDashboardHost } from './dashboard/host.ts'
import { parseListenAddress } from './listen-address.ts'
import { TracingEnv, withoutUnusedTracing } from './telemetry/tracing-env.ts'

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

const absolutePath = z.string().startsWith('/', 'must be an absolute path')

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
  ATOLL_TLS_CERT_FILE: absolutePath
    .optional()
    .describe(
      'PEM file with the certificate for *.ATOLL_DOMAIN, then those of its issuers. Turns on HTTPS. Read again when it changes. Default: a certificate of the local CA, if atoll tls local has created one.',
    ),
  ATOLL_TLS_KEY_FILE: absolutePath
    .optional()
    .describe('PEM file with the key of ATOLL_TLS_CERT_FILE, not encrypted.'),
  ATOLL_TLS_LISTEN: listenAddress
    .optional()
    .describe(
      'Address for HTTPS: API, sandboxes and dashboard. Default: 127.0.0.1 with the port of ATOLL_DOMAIN, or 443.',
    ),
  ATOLL_HTTP_LISTEN: listenAddress
    .optional()
    .describe(
      'Address for plain HTTP that answers the CA of ATOLL_ACME_DIRECTORY and redirects browsers to HTTPS, such as 0.0.0.0:80. Serves nothing else. Needs HTTPS. Default: off.',
    ),
  ATOLL_ACME_DIRECTORY: z
    .url({ protocol: /^https$/, error: 'must be an https:// URL' })
    .optional()
    .describe(
      'Directory URL of a CA that speaks ACME. The server gets and renews the certificate of ATOLL_DOMAIN by itself. Default: off.',
    ),
  ATOLL_ACME_TERMS: z
    .literal('agreed', 'must be agreed')
    .optional()
    .describe('agreed: you accept the terms of service of the CA. ACME needs it.'),
  ATOLL_ACME_EMAIL: z
    .email('must be an e-mail address')
    .optional()
    .describe('Address for messages of the CA about your certificates. Default: none.'),
  ATOLL_ACME_HOOK: absolutePath
    .optional()
    .describe(
      'Program that publishes DNS records for the CA: HOOK add|remove NAME VALUE. With it the certificate is for *.ATOLL_DOMAIN. Default: the CA asks ATOLL_HTTP_LISTEN, and the certificate is for the names of API and dashboard only.',
    ),
  ATOLL_ACME_CA_FILE: absolutePath
    .optional()
    .describe(
      'PEM file with root certificates for the connection to the CA, besides the well-known ones. For a CA of your own.',
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
  ATOLL_METRICS_LISTEN: listenAddress
    .refine(({ host }) => host === 'localhost' || (isIP(host) !== 0 && isLoopback(host)), {
      error: 'must be a loopback address, such as 127.0.0.1:9464: metrics need no key',
    })
    .optional()
    .describe(
      'Address for metrics in the Prometheus format, below /metrics; loopback only. Default: no metrics.',
    ),
  ...TracingEnv,
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
  readonly fleet: FleetConfig
}

/** Returns the names of all settings of the server and its parts. */
export function settingNames(): ReadonlySet<string> {
  const schemas = [ServerEnv, ApiEnv, NodeEnv, EdgeEnv, FleetEnv]
  return new Set(schemas.flatMap(({ shape }) => Object.keys(shape)))
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
  const server = attempt((from) =>
    checkCombinations(parseEnvironment(ServerEnv, withoutUnusedTracing(from))),
  )
  const api = attempt(loadApiConfig)
  const node = attempt(loadNodeConfig)
  const edge = attempt(loadEdgeConfig)
  const fleet = attempt(loadFleetConfig)
  if (!server || !api || !node || !edge || !fleet) {
    const text = `The configuration is refused\n${[...mistakes].join('\n')}`
    throw new Fault('invalid', 'configuration_refused', text)
  }
  return Object.freeze({ server, api, node, edge, fleet })
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
    ...acmeMistakes(settings),
    hasFile &&
      (ATOLL_TLS_CERT_FILE === undefined || ATOLL_TLS_KEY_FILE === undefined) &&
      'ATOLL_TLS_CERT_FILE and ATOLL_TLS_KEY_FILE need each other',
    (hasFile || ATOLL_TLS_LISTEN !== undefined || settings.ATOLL_HTTP_LISTEN !== undefined) &&
      ATOLL_DOMAIN === undefined &&
      'HTTPS needs a domain: set ATOLL_DOMAIN',
    hostName !== undefined &&
      (dashboardHost === hostName || dashboardHost === `api.${hostName}`) &&
      `ATOLL_DASHBOARD_HOST must not be ${dashboardHost}, which serves the API`,
  ].filter((mistake) => mistake !== false)
  if (mistakes.length > 0) throw new Error(['', ...mistakes.map((text) => `✖ ${text}`)].join('\n'))
  return settings
}

function acmeMistakes(settings: z.infer<typeof ServerEnv>): (string | false)[] {
  const { ATOLL_ACME_DIRECTORY, ATOLL_ACME_HOOK, ATOLL_HTTP_LISTEN, ATOLL_DOMAIN } = settings
  const others = ['ATOLL_ACME_TERMS', 'ATOLL_ACME_EMAIL', 'ATOLL_ACME_HOOK'] as const
  if (ATOLL_ACME_DIRECTORY === undefined) {
    const useless = others.find((name) => settings[name] !== undefined)
    return [useless !== undefined && `${useless} needs ATOLL_ACME_DIRECTORY`]
  }
  return [
    settings.ATOLL_ACME_TERMS === undefined &&
      'ATOLL_ACME_DIRECTORY needs ATOLL_ACME_TERMS=agreed: read the terms of the CA first',
    settings.ATOLL_TLS_CERT_FILE !== undefined &&
      'ATOLL_ACME_DIRECTORY and ATOLL_TLS_CERT_FILE exclude each other: choose where the certificate comes from',
    !isDomainName(ATOLL_DOMAIN?.split(':', 1)[0] ?? '') &&
      'ATOLL_ACME_DIRECTORY needs a domain with a dot: set ATOLL_DOMAIN',
    ATOLL_ACME_HOOK === undefined &&
      ATOLL_HTTP_LISTEN === undefined &&
      'ATOLL_ACME_DIRECTORY needs ATOLL_ACME_HOOK for a wildcard certificate, or ATOLL_HTTP_LISTEN=0.0.0.0:80 for one without sandboxes',
  ]
}
