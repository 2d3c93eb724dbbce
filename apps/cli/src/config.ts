import { parseEnvironment } from '@atoll/kit/config'
import { z } from 'zod'

const url = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).optional()
const domain = z
  .string()
  .regex(/^[a-z0-9.-]+(:[0-9]+)?$/i, 'must be a host name, with a port if need be')
  .optional()
const key = z.string().optional()

const CliEnv = z.object({
  ATOLL_API_URL: url.describe('URL of the platform API.'),
  E2B_API_URL: url.describe('Name of the same setting in the E2B SDK.'),
  ATOLL_SANDBOX_URL: url.describe('URL for sandbox traffic. Default: the URL of the platform API.'),
  E2B_SANDBOX_URL: url.describe('Name of the same setting in the E2B SDK.'),
  ATOLL_API_KEY: key.describe('API key. Default: the key in ATOLL_DATA_DIR/credentials.json.'),
  E2B_API_KEY: key.describe('Name of the same setting in the E2B SDK.'),
  ATOLL_DOMAIN: domain.describe(
    'Domain of the host names of sandboxes. Default: that of the sandbox URL.',
  ),
  E2B_DOMAIN: domain.describe('Name of the same setting in the E2B SDK.'),
  ATOLL_ADMIN_TOKEN: key.describe('Token of operators, for nodes and installs of templates.'),
  ATOLL_DATA_DIR: z
    .string()
    .default('/var/lib/atoll')
    .describe('Data directory of the local server.'),
  TERM: z.string().default('xterm-256color').describe('Terminal type for shells in sandboxes.'),
  COLORTERM: z
    .string()
    .optional()
    .describe('Colour support of the terminal, for shells in sandboxes.'),
})

export interface CliConfig {
  readonly apiUrl: string | undefined
  readonly sandboxUrl: string | undefined
  readonly apiKey: string | undefined
  readonly adminToken: string | undefined
  /** Domain of the host names of sandboxes, with the port. */
  readonly domain: string | undefined
  readonly dataDir: string
  /** Variables that describe the local terminal to a shell in a sandbox. */
  readonly terminalEnv: Record<string, string>
  /** All variables, for the server and the node, which parse their own settings. */
  readonly environment: Record<string, string | undefined>
}

/** An empty variable counts as not set: `VAR= atoll …` is a common way to unset one. */
export function loadConfig(env: Record<string, string | undefined>): CliConfig {
  const environment = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const parsed = parseEnvironment(CliEnv, environment)
  return Object.freeze({
    apiUrl: parsed.ATOLL_API_URL ?? parsed.E2B_API_URL,
    sandboxUrl: parsed.ATOLL_SANDBOX_URL ?? parsed.E2B_SANDBOX_URL,
    apiKey: parsed.ATOLL_API_KEY ?? parsed.E2B_API_KEY,
    adminToken: parsed.ATOLL_ADMIN_TOKEN,
    domain: parsed.ATOLL_DOMAIN ?? parsed.E2B_DOMAIN,
    dataDir: parsed.ATOLL_DATA_DIR,
    terminalEnv: {
      TERM: parsed.TERM,
      LANG: 'C.UTF-8',
      LC_ALL: 'C.UTF-8',
      ...(parsed.COLORTERM && { COLORTERM: parsed.COLORTERM }),
    },
    environment,
  })
}
