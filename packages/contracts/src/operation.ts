import { z } from 'zod'

/**
 * Operation of the platform API as a value. The routes of the server, the types of the client and the OpenAPI document
 * derive from it. Unknown request properties are ignored, since newer clients may send them.
 */
export interface Operation<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> {
  readonly id: string
  readonly summary: string
  readonly method: Method
  /** Parameters are in braces: `/sandboxes/{sandboxID}`. */
  readonly path: string
  /** Allowed callers: team keys and members, users, operators, or anyone without credentials. */
  readonly auth: 'team' | 'user' | 'admin' | 'none'
  readonly params: Params
  readonly query: Query
  /** `z.undefined()` if the operation has no body. A schema that accepts undefined makes the body optional. */
  readonly body: Body
  readonly replies: Readonly<Record<number, Reply>>
  /** Statuses of expected failures besides those implied by `auth`. Each has the body `Error`. */
  readonly errors: readonly number[]
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Reply {
  readonly description: string
  /** Absent: empty body. A string: text of this media type. */
  readonly body?: z.ZodType | TextType
  readonly headers?: Readonly<Record<string, string>>
}

export type TextType = 'text/plain' | 'text/html'

interface Definition<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
> extends Omit<Operation, 'params' | 'query' | 'body'> {
  readonly params?: P
  readonly query?: Q
  readonly body?: B
}

const nothing = z.object({})

export function defineOperation<
  P extends z.ZodObject = typeof nothing,
  Q extends z.ZodObject = typeof nothing,
  B extends z.ZodType = z.ZodUndefined,
>(definition: Definition<P, Q, B>): Operation<P, Q, B>
export function defineOperation(
  definition: Definition<z.ZodObject, z.ZodObject, z.ZodType>,
): Operation {
  const { auth, errors } = definition
  return {
    params: nothing,
    query: nothing,
    body: z.undefined(),
    ...definition,
    errors: [...new Set([...impliedErrors[auth], ...errors])].toSorted((a, b) => a - b),
  }
}

/** Failures that can happen before the operation runs. */
const impliedErrors = {
  team: [401, 403, 429],
  user: [401],
  admin: [401],
  none: [],
} as const satisfies Record<Operation['auth'], readonly number[]>
