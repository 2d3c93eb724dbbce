import { createClient } from '@connectrpc/connect'
import type { Client, Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { Process } from '@atoll/contracts/gen/process/process_pb'
import { openStream } from './open-stream.ts'
import { connectMethod, startMethod } from './process-messages.ts'

export interface SandboxOptions {
  /** The base of the sandbox-side API; the headers, not the host name, say which sandbox is meant. */
  readonly url: string
  readonly sandboxId: string
  readonly accessToken?: string | undefined
  readonly port?: number
  /** The user that processes run as; the sandbox's default user when absent. */
  readonly user?: string | undefined
  /**
   * For who passes a program's output on at once: the bytes of an event are good only until the next is asked for, then
   * their memory is read into again. It halves the time that much output takes the client.
   */
  readonly reusesMemory?: boolean
}

export type ProcessClient = Client<typeof Process>

/** The process service of one sandbox. Failures are `ConnectError`s; `faultFromConnect` translates them. */
export function createSandboxClient(options: SandboxOptions): ProcessClient {
  const baseUrl = options.url
  const headers = headersOf(options)
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: '1.1',
    interceptors: [withHeaders(headers)],
  })
  const client = createClient(Process, transport)
  if (!baseUrl.startsWith('http:')) return client // over TLS the library reads the streams too
  const target = { baseUrl, headers, reusesMemory: options.reusesMemory ?? false }
  return {
    ...client,
    start: (request, call) => openStream(startMethod, target, request, call),
    connect: (request, call) => openStream(connectMethod, target, request, call),
  }
}

const envdPort = 49983

function headersOf(options: SandboxOptions): Record<string, string> {
  return {
    'svc-sandbox-id': options.sandboxId,
    'svc-sandbox-port': String(options.port ?? envdPort),
    // A silent stream is told apart from a dead one by the events the daemon sends after so many seconds.
    'keepalive-ping-interval': '50',
    ...(options.accessToken && { 'x-access-token': options.accessToken }),
    ...(options.user && { authorization: basicUser(options.user) }),
  }
}

/** The password is not read: a user is chosen here, not proven. */
function basicUser(user: string): string {
  return `Basic ${Buffer.from(`${user}:`).toString('base64')}`
}

function withHeaders(headers: Record<string, string>): Interceptor {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value)
    return next(request)
  }
}
