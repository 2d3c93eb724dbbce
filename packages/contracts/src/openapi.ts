import { z } from 'zod'
import { ErrorBody } from './errors.ts'
import type { Operation, Reply } from './operation.ts'

/** The OpenAPI 3.1 document of `operations`. Schemas that carry an id become components. */
export function toOpenApi(operations: readonly Operation[], version: string): OpenApi {
  const components: Record<string, Json> = {}
  const paths: Record<string, Record<string, Json>> = {}
  for (const operation of operations) {
    const path = (paths[operation.path] ??= {})
    path[operation.method.toLowerCase()] = toOperationObject(operation, components)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Atoll platform API', version },
    paths,
    components: { schemas: components, securitySchemes },
  }
}

export interface OpenApi {
  readonly [key: string]: unknown
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>
}

type Json = Readonly<Record<string, unknown>>
type Components = Record<string, Json>

const securitySchemes = {
  ApiKeyAuth: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  AccessTokenAuth: { type: 'http', scheme: 'bearer' },
  AdminApiKeyAuth: { type: 'apiKey', in: 'header', name: 'X-Admin-Token' },
  TeamAuth: { type: 'apiKey', in: 'header', name: 'X-Team-ID' },
}

const security = {
  team: [
    { ApiKeyAuth: [] },
    { AccessTokenAuth: [] },
    { AccessTokenAuth: [], TeamAuth: [] },
    { AdminApiKeyAuth: [], TeamAuth: [] },
  ],
  user: [{ AccessTokenAuth: [] }],
  admin: [{ AdminApiKeyAuth: [] }],
  none: [],
} as const satisfies Record<Operation['auth'], readonly object[]>

function toOperationObject(operation: Operation, components: Components): Json {
  const { id, summary, auth, params, query, body, replies, errors } = operation
  const hasBody = !(body instanceof z.ZodUndefined)
  return {
    operationId: id,
    summary,
    security: security[auth],
    ...(auth === 'admin' && { 'x-internal': true }),
    parameters: [
      ...toParameters('path', params, components),
      ...toParameters('query', query, components),
    ],
    ...(hasBody && {
      requestBody: {
        required: !body.safeParse(undefined).success,
        content: { 'application/json': { schema: toSchema(body, 'input', components) } },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(replies).map(([status, reply]) => [status, toResponse(reply, components)]),
      ),
      ...Object.fromEntries(
        errors.map((status) => [
          status,
          toResponse({ description: errorTexts[status] ?? 'Error', body: ErrorBody }, components),
        ]),
      ),
    },
  }
}

const errorTexts: Readonly<Record<number, string>> = {
  400: 'The request is malformed or asks for what is not possible',
  401: 'The API key or access token is missing or wrong',
  403: 'The caller may not use this team',
  404: 'There is no such thing, or it belongs to another team',
  409: 'The state of the sandbox does not allow this now',
  429: 'Too many requests, or a limit of the team is reached',
  500: 'A failure of the server',
  503: 'No room at the moment; try again later',
  504: 'It took too long',
  507: 'The node has no disk space for this',
}

function toParameters(
  place: 'path' | 'query',
  { shape }: z.ZodObject,
  components: Components,
): Json[] {
  return Object.entries(shape).map(([name, property]) => {
    const { description, ...rest } = toSchema(property, 'input', components)
    return {
      name,
      in: place,
      required: place === 'path' || !property.safeParse(undefined).success,
      ...(description !== undefined && { description }),
      schema: rest,
    }
  })
}

function toResponse(reply: Reply, components: Components): Json {
  const { description, body, headers } = reply
  return {
    description,
    ...(headers && {
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, text]) => [
          name,
          { description: text, schema: { type: 'string' } },
        ]),
      ),
    }),
    ...(body && {
      content:
        typeof body === 'string'
          ? { [body]: { schema: { type: 'string' } } }
          : { 'application/json': { schema: toSchema(body, 'output', components) } },
    }),
  }
}

function toSchema(schema: z.ZodType, io: 'input' | 'output', components: Components): Json {
  const { $schema: _, $defs = {}, ...root } = z.toJSONSchema(schema, { io })
  // A schema with an id is among its own definitions, and the root refers to it.
  for (const [id, definition] of Object.entries($defs)) {
    const { id: _id, ...rest } = relocate(definition)
    components[id] = rest
  }
  return relocate(root)
}

/** References point into `$defs` of the schema they were made in; here that is the document's components. */
function relocate(schema: object): Json {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')
  return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
}
