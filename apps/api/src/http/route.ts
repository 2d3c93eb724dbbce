import type { Operation } from '@atoll/contracts/operation'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Authenticate, Credentials } from '../app/auth.ts'
import type { Caller, User } from '../domain/team.ts'
import { parseInput } from './input.ts'
import { applyRate } from './rate.ts'

/** Makes a route of an operation: who asks, then what they ask for, then the handler. */

export interface Call<O extends Operation> {
  readonly params: z.output<O['params']>
  readonly query: z.output<O['query']>
  readonly body: z.output<O['body']>
  /** Aborts when the client goes away before it has its answer. */
  readonly signal: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** A route for callers of a team. */
export function addTeamRoute<O extends Operation>(
  server: FastifyInstance,
  operation: O & { readonly auth: Operation['auth'] },
  authenticate: Authenticate,
  handle: (call: Call<O>, caller: Caller) => Promise<Answer>,
): void {
  const callers = new WeakMap<FastifyRequest, Caller>()
  server.route({
    method: operation.method,
    url: toUrl(operation),
    config: { operation: operation.id },
    // Before the body is read: strangers cannot make us take in 16 MiB.
    async onRequest(request, reply) {
      const caller = await authenticate.team(readCredentials(request), operation.id)
      callers.set(request, caller)
      if (caller.rate) applyRate(reply, caller.rate)
    },
    async handler(request, reply) {
      const caller = callers.get(request)
      if (!caller) throw new Error('a request got past authentication without a caller')
      return send(reply, operation, await handle(toCall(operation, request, reply), caller))
    },
  })
}

/** A route for users, whichever team they are in. */
export function addUserRoute<O extends Operation>(
  server: FastifyInstance,
  operation: O,
  authenticate: Authenticate,
  handle: (call: Call<O>, user: User) => Promise<Answer>,
): void {
  const users = new WeakMap<FastifyRequest, User>()
  server.route({
    method: operation.method,
    url: toUrl(operation),
    config: { operation: operation.id },
    async onRequest(request) {
      users.set(request, await authenticate.user(readCredentials(request)))
    },
    async handler(request, reply) {
      const user = users.get(request)
      if (!user) throw new Error('a request got past authentication without a user')
      return send(reply, operation, await handle(toCall(operation, request, reply), user))
    },
  })
}

/** A route for operators. */
export function addAdminRoute<O extends Operation>(
  server: FastifyInstance,
  operation: O,
  authenticate: Authenticate,
  handle: (call: Call<O>) => Promise<Answer>,
): void {
  server.route({
    method: operation.method,
    url: toUrl(operation),
    config: { operation: operation.id },
    async onRequest(request) {
      authenticate.admin(readCredentials(request))
    },
    handler: async (request, reply) =>
      send(reply, operation, await handle(toCall(operation, request, reply))),
  })
}

/** A route for everybody. */
export function addOpenRoute<O extends Operation>(
  server: FastifyInstance,
  operation: O,
  handle: (call: Call<O>) => Promise<Answer>,
): void {
  server.route({
    method: operation.method,
    url: toUrl(operation),
    config: { operation: operation.id },
    handler: async (request, reply) =>
      send(reply, operation, await handle(toCall(operation, request, reply))),
  })
}

export function toUrl({ path }: Operation): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

function readCredentials({ headers }: FastifyRequest): Credentials {
  const [, bearer] = /^bearer +(.+)$/i.exec(headers.authorization ?? '') ?? []
  const first = (name: string) => [headers[name]].flat()[0]
  return {
    apiKey: first('x-api-key'),
    bearer,
    adminToken: first('x-admin-token'),
    teamId: first('x-team-id'),
  }
}

function toCall<O extends Operation>(
  operation: O,
  request: FastifyRequest,
  reply: FastifyReply,
): Call<O> {
  const { params, query, body } = operation
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  return {
    params: parseInput<O['params']>(params, request.params, 'path'),
    query: parseInput<O['query']>(query, request.query, 'query'),
    body: parseInput<O['body']>(
      body,
      body instanceof z.ZodUndefined ? undefined : request.body,
      'body',
    ),
    signal: gone.signal,
  }
}

/** The reply goes through the schema of the contract, so that nothing leaves that it does not name. */
function send(reply: FastifyReply, operation: Operation, answer: Answer): FastifyReply {
  const { status, body, headers = {} } = answer
  const declared = operation.replies[status]
  if (!declared) throw new Error(`${operation.id} does not declare the status ${status}`)
  reply.code(status).headers(headers)
  if (declared.body === undefined) return reply.send()
  if (typeof declared.body === 'string') {
    return reply.type(`${declared.body}; charset=utf-8`).send(body)
  }
  return reply.send(declared.body.parse(body))
}
