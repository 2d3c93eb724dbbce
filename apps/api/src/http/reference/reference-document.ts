/** Schemas for the parts of an OpenAPI document that the reference page shows. */
import { z } from 'zod'

export interface SchemaObject {
  readonly $ref?: string | undefined
  readonly type?: string | readonly string[] | undefined
  readonly format?: string | undefined
  readonly description?: string | undefined
  readonly deprecated?: boolean | undefined
  readonly enum?: readonly unknown[] | undefined
  readonly const?: unknown
  readonly default?: unknown
  readonly minimum?: number | undefined
  readonly maximum?: number | undefined
  readonly maxLength?: number | undefined
  readonly items?: SchemaObject | undefined
  readonly anyOf?: readonly SchemaObject[] | undefined
  readonly properties?: Readonly<Record<string, SchemaObject>> | undefined
  readonly required?: readonly string[] | undefined
  readonly additionalProperties?: SchemaObject | boolean | undefined
}

const Schema: z.ZodType<SchemaObject> = z.lazy(() =>
  z.object({
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    format: z.string().optional(),
    description: z.string().optional(),
    deprecated: z.boolean().optional(),
    enum: z.array(z.unknown()).optional(),
    const: z.unknown().optional(),
    default: z.unknown().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    maxLength: z.number().optional(),
    items: Schema.optional(),
    anyOf: z.array(Schema).optional(),
    properties: z.record(z.string(), Schema).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.union([z.boolean(), Schema]).optional(),
  }),
)

const Content = z.record(z.string(), z.object({ schema: Schema }))

const Operation = z.object({
  operationId: z.string(),
  summary: z.string(),
  security: z.array(z.record(z.string(), z.unknown())),
  parameters: z.array(
    z.object({
      name: z.string(),
      in: z.string(),
      required: z.boolean(),
      description: z.string().optional(),
      schema: Schema,
    }),
  ),
  requestBody: z.object({ required: z.boolean(), content: Content }).optional(),
  responses: z.record(
    z.string(),
    z.object({
      description: z.string(),
      headers: z.record(z.string(), z.object({ description: z.string() })).optional(),
      content: Content.optional(),
    }),
  ),
})

export type OperationObject = z.infer<typeof Operation>
export type ContentObject = z.infer<typeof Content>

export const ReferenceDocument = z.object({
  info: z.object({ title: z.string(), version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({ schemas: z.record(z.string(), Schema) }),
})
