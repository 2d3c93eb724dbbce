import { z } from 'zod'

/**
 * An operation of the platform API as a value: the server makes its route of it, the client its types, the
 * OpenAPI document its text. Unknown properties of a request are ignored: newer clients send fields we do not know.
 */
export interface Operation<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> {
  readonly id: string
  readonly summary: string
  readonly method: Method
  /** With parameters in braces: `/sandboxes/{sandboxID}`. */
  readonly path: string
  /** Who may call: keys and members of a team, users, operators, everybody. */
  readonly auth: 'team' | 'user' | 'admin' | 'none'
  readonly params: Params
  readonly query: Query
  /** `z.undefined()` where the operation reads no body. One that accepts undefined is optional. */
  readonly body: Body
  readonly replies: Readonly<Record<number, Reply>>
  /** The statuses of foreseen failures, besides those that come with `auth`; each has the body `Error`. */
  readonly errors: readonly number[]
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Reply {
  readonly description: string
  /** Absent: the body is empty. A string: text of this media type. */
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

/** What may happen before an operation is even looked at. */
const impliedErrors = {
  team: [401, 403, 429],
  user: [401],
  admin: [401],
  none: [],
} as const satisfies Record<Operation['auth'], readonly number[]>
