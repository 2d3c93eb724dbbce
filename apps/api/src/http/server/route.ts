import type { Operation } from '@atoll/contracts/operation'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Authenticate, Credentials } from '../../app/teams/auth.ts'
import type { Caller, User } from '../../domain/teams/team.ts'
import { parseInput } from './input.ts'
import { originOf } from './origin.ts'
import { applyRate } from './rate.ts'
import { noteAnswer, noteTeam } from './request-record.ts'

/** Registers operations as routes: authenticates the caller, validates the input, calls the handler. */

export interface Call<O extends Operation> {
  readonly params: z.output<O['params']>
  readonly query: z.output<O['query']>
  readonly body: z.output<O['body']>
  /** Origin that the client used, for URLs in the response. */
  readonly origin: string
  /** Aborts when the client disconnects before the response is sent. */
  readonly signal: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Adds a route for team credentials. */
export function addTeamRoute<O extends Operation>(
  server: FastifyInstance,
  operation: O,
  authenticate: Authenticate,
  handle: Handle<O, Caller>,
): void {
  addRoute(server, operation, {
    auth: 'team',
    async identify(request, reply) {
      const { rate, ...caller } = await authenticate.team(readCredentials(request), operation)
      noteTeam(request, caller.teamId)
      if (rate) applyRate(reply, rate)
      return caller
    },
    handle,
  })
}

/** Adds a route for users, independent of a team. */
export function addUserRoute<O extends Operation>(
  server: FastifyInstance,
  operation: O,
  authenticate: Authenticate,
  handle: Handle<O, User>,
): void {
  const identify = (request: FastifyRequest) => authenticate.user(readCredentials(request))
  addRoute(server, operation, { auth: 'user', identify, handle })
}

export function addAdminRoute<O extends Operation>(
  server: FastifyInstance,
  operation: O,
  authenticate: Authenticate,
  handle: Handle<O, void>,
): void {
  const identify = async (request: FastifyRequest) => authenticate.admin(readCredentials(request))
  addRoute(server, operation, { auth: 'admin', identify, handle })
}

/** Adds a route without authentication. */
export function addOpenRoute<O extends Operation>(
  server: FastifyInstance,
  operation: O,
  handle: Handle<O, void>,
): void {
  addRoute(server, operation, { auth: 'none', identify: async () => {}, handle })
}

type Handle<O extends Operation, Who> = (call: Call<O>, who: Who) => Promise<Answer>

interface Route<O extends Operation, Who> {
  /** Must match the operation's declaration. */
  readonly auth: Operation['auth']
  readonly identify: (request: FastifyRequest, reply: FastifyReply) => Promise<Who>
  readonly handle: Handle<O, Who>
}

function addRoute<O extends Operation, Who>(
  server: FastifyInstance,
  operation: O,
  { auth, identify, handle }: Route<O, Who>,
): void {
  const { id, method } = operation
  if (operation.auth !== auth) {
    throw new Error(`${id} is for ${operation.auth}, its route for ${auth}`)
  }
  const identified = new WeakMap<FastifyRequest, { readonly who: Who }>()
  server.route({
    method,
    url: toUrl(operation),
    config: { operation: id },
    // Authenticate before the body is read: unauthenticated clients cannot make the server buffer 16 MiB.
    async onRequest(request, reply) {
      identified.set(request, { who: await identify(request, reply) })
    },
    async handler(request, reply) {
      const caller = identified.get(request)
      if (!caller) throw new Error(`a request of ${id} got past authentication`)
      const answer = await handle(toCall(operation, request, reply), caller.who)
      noteAnswer(request, answer.body)
      return send(reply, operation, answer)
    },
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
    origin: originOf(request),
    signal: gone.signal,
  }
}

/** Sends the response through the schema of the contract, so that undeclared fields never leave the server. */
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
