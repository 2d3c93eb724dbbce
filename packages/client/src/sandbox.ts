import { createClient } from '@connectrpc/connect'
import type { Client, Interceptor, Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { Process } from '@atoll/contracts/gen/process/process_pb'
import { openStream } from './stream/open-stream.ts'
import { connectMethod, startMethod } from './stream/process-messages.ts'

export interface SandboxOptions {
  /** Base URL of the sandbox-side API. Headers, not the host name, select the sandbox. */
  readonly url: string
  readonly sandboxId: string
  readonly accessToken?: string | undefined
  readonly port?: number
  /** User that processes run as. Default: the default user of the sandbox. */
  readonly user?: string | undefined
  /**
   * Reuses read buffers: the bytes of an event are valid only until the next event is requested. For callers that
   * pass output on at once; halves the client's time for large outputs.
   */
  readonly reusesMemory?: boolean
}

export type ProcessClient = Client<typeof Process>

/** Client of the process service of one sandbox. Failures are `ConnectError`s; `faultFromConnect` translates them. */
export function createSandboxClient(options: SandboxOptions): ProcessClient {
  const baseUrl = options.url
  const headers = headersOf(options)
  const client = createClient(Process, createSandboxTransport(options))
  if (!baseUrl.startsWith('http:')) return client // `openStream` supports plain HTTP only
  const target = { baseUrl, headers, reusesMemory: options.reusesMemory ?? false }
  return {
    ...client,
    start: (request, call) => openStream(startMethod, target, request, call),
    connect: (request, call) => openStream(connectMethod, target, request, call),
  }
}

/** Port of envd inside a sandbox. */
export const envdPort = 49983

export function createSandboxTransport(options: SandboxOptions): Transport {
  return createConnectTransport({
    baseUrl: options.url,
    httpVersion: '1.1',
    interceptors: [withHeaders(headersOf(options))],
  })
}

export function headersOf(options: SandboxOptions): Record<string, string> {
  return {
    'svc-sandbox-id': options.sandboxId,
    'svc-sandbox-port': String(options.port ?? envdPort),
    // Envd sends keep-alive events at this interval in seconds, which distinguish a silent stream from a dead one.
    'keepalive-ping-interval': '50',
    ...(options.accessToken && { 'x-access-token': options.accessToken }),
    ...(options.user && { authorization: basicUser(options.user) }),
  }
}

/** The password is ignored: this selects a user, it does not authenticate one. */
function basicUser(user: string): string {
  return `Basic ${Buffer.from(`${user}:`).toString('base64')}`
}

function withHeaders(headers: Record<string, string>): Interceptor {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value)
    return next(request)
  }
}
