import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Text, Timestamp } from '../schemas/text.ts'

/** Tags of template builds, and resolution of names. */

const Tags = z
  .array(Text)
  .min(1, { error: 'must not be empty' })
  .max(100, { error: 'must be at most 100' })

export const assignTags = defineOperation({
  id: 'template.tag',
  summary: 'Point tags at the build of a reference',
  method: 'POST',
  path: '/templates/tags',
  auth: 'team',
  body: z
    .object({ target: Text.describe('`name[:tag]`; the default tag if omitted'), tags: Tags })
    .meta({ id: 'AssignTemplateTags' }),
  replies: {
    201: {
      description: 'The tags and their build',
      body: z
        .object({ tags: z.array(z.string()), buildID: z.uuid() })
        .meta({ id: 'AssignedTemplateTags' }),
    },
  },
  errors: [400, 401, 403, 404, 500],
})

export const removeTags = defineOperation({
  id: 'template.untag',
  summary: 'Remove tags from a template; ignores tags that it does not have',
  method: 'DELETE',
  path: '/templates/tags',
  auth: 'team',
  body: z
    .object({ name: Text.describe('ID or name, without a tag'), tags: Tags })
    .meta({ id: 'RemoveTemplateTags' }),
  replies: { 204: { description: 'The tags are removed' } },
  errors: [400, 401, 403, 404, 500],
})

const TemplateParams = z.object({
  templateID: Text.describe('ID or name, percent-encoded'),
})

export const TemplateTag = z
  .object({ tag: z.string(), buildID: z.uuid(), createdAt: Timestamp })
  .meta({ id: 'TemplateTag' })

export const listTags = defineOperation({
  id: 'template.tags',
  summary: 'List the tags of a template and their builds',
  method: 'GET',
  path: '/templates/{templateID}/tags',
  auth: 'team',
  params: TemplateParams,
  replies: { 200: { description: 'Tags ordered by name', body: z.array(TemplateTag) } },
  errors: [400, 401, 403, 404, 500],
})

export const findAlias = defineOperation({
  id: 'template.alias',
  summary: 'Get the template that a name refers to',
  method: 'GET',
  path: '/templates/aliases/{alias}',
  auth: 'team',
  params: z.object({ alias: Text.describe('Name, percent-encoded, with an optional tag') }),
  replies: {
    200: {
      description: 'The template',
      body: z.object({ templateID: z.string(), public: z.boolean() }).meta({ id: 'TemplateAlias' }),
    },
  },
  errors: [400, 401, 403, 404, 500],
})
