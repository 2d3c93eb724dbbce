import { z } from 'zod'
import { ErrorBody } from './errors.ts'
import type { Operation, Reply } from './operation.ts'

/** Generates the OpenAPI 3.1 document. Schemas with an ID become components. */
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
  400: 'The request is malformed or cannot be fulfilled',
  401: 'The API key or access token is missing or wrong',
  403: 'The caller may not access this team',
  404: 'The resource does not exist or belongs to another team',
  409: 'The current state of the sandbox does not allow this',
  429: 'Rate limit or team limit reached',
  500: 'Internal server error',
  503: 'No capacity at the moment; retry later',
  504: 'The operation timed out',
  507: 'The node does not have enough disk space',
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
  // A schema with an ID appears in its own definitions, and the root refers to it.
  for (const [id, definition] of Object.entries($defs)) {
    const { id: _id, ...rest } = relocate(definition)
    components[id] = rest
  }
  return relocate(root)
}

/** Rewrites references from the schema's own `$defs` to the components of the document. */
function relocate(schema: object): Json {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')
  return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
}
