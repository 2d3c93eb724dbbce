import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { PageQuery } from './schemas/paging.ts'
import { byteLength, Text, Timestamp } from './schemas/text.ts'

/** Secrets that header rules refer to. Their values are never returned. */

const limits = { entries: 32, keyBytes: 128, valueBytes: 1024, totalBytes: 8192 }

const Metadata = z
  .record(Text, Text)
  .refine(
    (metadata) => {
      const sizes = Object.entries(metadata).map(([key, value]) => [key, value].map(byteLength))
      const total = sizes.flat().reduce((sum, size) => sum + size, 0)
      const isEachSmall = sizes.every(
        ([key = 0, value = 0]) => key <= limits.keyBytes && value <= limits.valueBytes,
      )
      return sizes.length <= limits.entries && total <= limits.totalBytes && isEachSmall
    },
    {
      error: `must be at most ${limits.entries} entries, each key at most ${limits.keyBytes} and each value at most ${limits.valueBytes} bytes, ${limits.totalBytes} in all`,
    },
  )
  .meta({ id: 'SecretMetadata' })

/** Characters that an HTTP header can hold, since the value is sent in one. */
const Value = z
  .string()
  .min(1, { error: 'must not be empty' })
  .max(8192, { error: 'must be at most 8192 characters' })
  .regex(/^[\t\x20-\x7e\x80-\xff]+$/, {
    error: 'must be Latin-1 text without control characters such as line breaks',
  })
  .describe('Never returned')

const Name = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,128}$/, { error: 'must be 1 to 128 letters, digits, "_" or "-"' })
  .refine((name) => !/^sec_/i.test(name), { error: 'must not begin with "sec_"' })
  .transform((name) => name.toLowerCase())
  .describe('Stored in lower case')

const SecretParams = z.object({
  secretID: z
    .string()
    .regex(/^[a-zA-Z0-9_-]{1,128}$/, { error: 'must be the ID or the name of a secret' }),
})

export const Secret = z
  .object({
    secretID: z.string(),
    name: z.string(),
    currentVersion: z.int(),
    metadata: z.record(z.string(), z.string()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: 'Secret' })

export const listSecrets = defineOperation({
  id: 'secret.list',
  summary: 'List the secrets of the team in pages, newest first, without their values',
  method: 'GET',
  path: '/secrets',
  auth: 'team',
  query: z.object(PageQuery),
  replies: {
    200: {
      description: 'One page',
      body: z.array(Secret),
      headers: { 'X-Next-Token': 'Present when there is another page' },
    },
  },
  errors: [400, 401, 500],
})

export const createSecret = defineOperation({
  id: 'secret.create',
  summary: 'Store a secret; header rules refer to it as `${e2b.secrets.NAME}`',
  method: 'POST',
  path: '/secrets',
  auth: 'team',
  body: z
    .object({ name: Name, value: Value, metadata: Metadata.optional() })
    .meta({ id: 'NewSecret' }),
  replies: { 201: { description: 'Stored', body: Secret } },
  errors: [400, 401, 409, 429, 500],
})

export const getSecret = defineOperation({
  id: 'secret.get',
  summary: 'Get a secret by ID or name, without its value',
  method: 'GET',
  path: '/secrets/{secretID}',
  auth: 'team',
  params: SecretParams,
  replies: { 200: { description: 'The secret without its value', body: Secret } },
  errors: [400, 401, 404, 500],
})

export const updateSecret = defineOperation({
  id: 'secret.update',
  summary: 'Replace the value of a secret, in running sandboxes too',
  method: 'POST',
  path: '/secrets/{secretID}',
  auth: 'team',
  params: SecretParams,
  body: z
    .object({
      value: Value,
      metadata: Metadata.optional().describe('Unchanged if omitted'),
    })
    .meta({ id: 'SecretUpdate' }),
  replies: { 200: { description: 'The new version', body: Secret } },
  errors: [400, 401, 404, 500],
})

export const deleteSecret = defineOperation({
  id: 'secret.delete',
  summary: 'Delete a secret; headers that refer to it are no longer set',
  method: 'DELETE',
  path: '/secrets/{secretID}',
  auth: 'team',
  params: SecretParams,
  replies: { 204: { description: 'Deleted' } },
  errors: [400, 401, 404, 500],
})
