import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Text, Timestamp } from '../schemas/text.ts'
import { SandboxId, SandboxParams } from './manage.ts'

/** Files that a sandbox changed, compared with its template or with another sandbox. Reading them never wakes a paused sandbox. */

const FileChangeKind = z.enum(['added', 'modified', 'deleted']).meta({ id: 'FileChangeKind' })

const FileType = z
  .enum(['file', 'directory', 'symlink', 'other'])
  .describe('`other`: device, socket or named pipe')
  .meta({ id: 'FileType' })

const mode = z.int().describe('Permission bits')

export const FileChange = z
  .object({
    path: z.string().describe('Absolute path; bytes that are not UTF-8 appear as U+FFFD'),
    kind: FileChangeKind,
    type: FileType,
    sizeBytes: z.int(),
    mode,
    modifiedAt: Timestamp,
  })
  .meta({ id: 'FileChange' })

export const FileChanges = z
  .object({
    changes: z
      .array(FileChange)
      .describe('Type, size, mode and time of a deleted entry are those before the deletion'),
    nextToken: z
      .string()
      .optional()
      .describe(
        'Present if there may be more. A page can have fewer entries than the limit, or none',
      ),
    isComplete: z
      .boolean()
      .describe('False if directories were too large (200,000 names) or too deep (256) to list'),
  })
  .meta({ id: 'FileChanges' })

const FileSide = z
  .object({
    type: FileType,
    sizeBytes: z.int(),
    mode,
    content: z
      .string()
      .optional()
      .describe('First MiB of a text file, or target of a symbolic link. Absent: not text'),
    isTruncated: z.boolean(),
  })
  .meta({ id: 'ChangedFileSide' })

export const ChangedFile = z
  .object({
    path: z.string(),
    before: FileSide.optional().describe('Absent: the entry is new'),
    after: FileSide.optional().describe('Absent: the entry is deleted'),
  })
  .meta({ id: 'ChangedFile' })

const maxLimit = 1000

const Other = SandboxId.optional().describe(
  'Compare with this sandbox instead of the template. Both must be from the same template build: forks, and sandboxes of snapshots, are',
)

export const listFileChanges = defineOperation({
  id: 'sandbox.changes',
  summary: 'List the files that a sandbox added, modified or deleted since its template',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/changes',
  auth: 'team',
  params: SandboxParams,
  query: z.object({
    path: Text.default('/').describe('Absolute path: only this entry and those below it'),
    limit: z
      .string()
      .regex(/^[0-9]{1,4}$/, { error: `must be an integer from 1 to ${maxLimit}` })
      .transform(Number)
      .refine((limit) => limit >= 1 && limit <= maxLimit, {
        error: `must be an integer from 1 to ${maxLimit}`,
      })
      .default(100)
      .describe(`Maximum number of entries, 1 to ${maxLimit}`),
    nextToken: Text.optional().describe('`nextToken` of the previous page'),
    with: Other,
  }),
  replies: { 200: { description: 'In the order of the paths', body: FileChanges } },
  errors: [400, 401, 404, 409, 500, 503],
})

export const readFileChange = defineOperation({
  id: 'sandbox.changedFile',
  summary: 'Read a changed file of a sandbox, before and after the change',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/changes/content',
  auth: 'team',
  params: SandboxParams,
  query: z.object({ path: Text.describe('Absolute path'), with: Other }),
  replies: { 200: { description: 'Both sides', body: ChangedFile } },
  errors: [400, 401, 404, 409, 500, 503],
})
