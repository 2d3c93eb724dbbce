import { mkdtemp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { atoll, install } from './installation.ts'
import type { Installation } from './installation.ts'

/** Installation that speaks HTTPS under a domain below localhost, with a local CA. */
export interface SecureInstallation extends AsyncDisposable {
  readonly installation: Installation
  /** Includes the port. */
  readonly domain: string
  readonly port: number
  readonly caFile: string
  /** Certificate of the CA, as PEM. */
  readonly ca: string
  /** Runs Node.js with E2B_DOMAIN, the API key and the CA, and returns what it prints. */
  runClient(args: readonly string[], env?: Record<string, string>): Promise<string>
}

export async function installWithTls(
  settings: Record<string, string> = {},
): Promise<SecureInstallation> {
  const port = await freePort()
  const domain = `atoll.localhost:${port}`
  const dataDir = await mkdtemp('/var/tmp/atoll-test-')
  const own = { ...settings, ATOLL_DATA_DIR: dataDir, ATOLL_DOMAIN: domain }
  await run(atoll, ['tls', 'local'], { env: { ...process.env, ...own } })
  const installation = await install(own)
  const caFile = join(dataDir, 'tls/ca.crt')
  return {
    ...{ installation, domain, port, caFile },
    ca: await readFile(caFile, 'utf8'),
    runClient: (args, env = {}) =>
      run(process.execPath, args, {
        env: {
          ...withoutAddresses(process.env),
          E2B_DOMAIN: domain,
          E2B_API_KEY: installation.apiKey,
          NODE_EXTRA_CA_CERTS: caFile,
          // Node.js asks the resolver of the machine, which may not know names below localhost.
          NODE_OPTIONS: `--import=${resolveLocalhost}`,
          ...env,
        },
        timeoutMs: 300_000,
      }),
    [Symbol.asyncDispose]: () => installation[Symbol.asyncDispose](),
  }
}

const resolveLocalhost = pathToFileURL(join(import.meta.dirname, 'resolve-localhost.ts')).href

/** Clients must find the server by the domain alone. */
function withoutAddresses(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !/^(E2B|ATOLL)_/.test(name))
  return Object.fromEntries(kept)
}
