/** Runs a real envd on a free port with its own state folder, for tests. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@connectrpc/connect'
import type { Client, Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { Process } from '@atoll/contracts/gen/process/process_pb'
import '../http/wire/install-header-map.ts'
import { startEnvd } from '../envd.ts'
import type { EnvdOptions } from '../envd.ts'
import { buildGuestProgram } from './guest-program.ts'

export const accessToken = 'token-of-this-sandbox'
export const initToken = 'secret-of-the-node'

export interface RunningEnvd extends AsyncDisposable {
  readonly url: string
  readonly folder: string
  readonly client: Client<typeof Process>
  readonly unexpectedErrors: unknown[]
  init(body: unknown, headers?: Record<string, string>): Promise<Response>
  as(user: string): { headers: Record<string, string> }
  restart(): Promise<RunningEnvd>
}

/** Secures the sandbox with an access token, unless `init` is false. */
export async function runEnvd(
  options: Partial<EnvdOptions> & { readonly init?: boolean; readonly binary?: boolean } = {},
): Promise<RunningEnvd> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-envd-'))
  const running = await open(folder, options)
  if (options.init !== false) await running.init({ accessToken })
  return running
}

async function open(
  folder: string,
  options: Partial<EnvdOptions> & { readonly binary?: boolean },
): Promise<RunningEnvd> {
  const unexpectedErrors: unknown[] = []
  const envd = await startEnvd({
    port: 0,
    host: '127.0.0.1',
    guestProgram: await buildGuestProgram(),
    initToken,
    stateFile: join(folder, 'state/envd.json'),
    variableFolder: join(folder, 'variables'),
    metadataFolder: join(folder, 'metadata'),
    trustRoot: join(folder, 'root'),
    path: '/usr/local/bin:/usr/bin:/bin',
    report: (cause) => unexpectedErrors.push(cause),
    ...options,
  })
  const url = `http://127.0.0.1:${envd.port}`
  return {
    url,
    folder,
    unexpectedErrors,
    client: createClient(
      Process,
      createConnectTransport({
        baseUrl: url,
        httpVersion: '1.1',
        useBinaryFormat: options.binary ?? false,
        interceptors: [withToken],
      }),
    ),
    init: (body, headers = { 'x-init-token': initToken }) =>
      fetch(`${url}/init`, {
        method: 'POST',
        headers,
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    as: (user) => ({ headers: { authorization: `Basic ${btoa(`${user}:`)}` } }),
    async restart() {
      await envd.close()
      return open(folder, options)
    },
    async [Symbol.asyncDispose]() {
      await envd.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const withToken: Interceptor = (next) => (request) => {
  if (!request.header.has('x-access-token')) request.header.set('x-access-token', accessToken)
  return next(request)
}
