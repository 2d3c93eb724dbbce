import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Text, Timestamp } from '../schemas/text.ts'

/** Names for builds of a template, and what a name means. */

const Tags = z
  .array(Text)
  .min(1, { error: 'must not be empty' })
  .max(100, { error: 'must be at most 100' })

export const assignTags = defineOperation({
  id: 'template.tag',
  summary: 'Let tags mean the build that a reference means',
  method: 'POST',
  path: '/templates/tags',
  auth: 'team',
  body: z
    .object({ target: Text.describe('`name[:tag]`; without a tag the default one'), tags: Tags })
    .meta({ id: 'AssignTemplateTags' }),
  replies: {
    201: {
      description: 'They do',
      body: z
        .object({ tags: z.array(z.string()), buildID: z.uuid() })
        .meta({ id: 'AssignedTemplateTags' }),
    },
  },
  errors: [400, 401, 403, 404, 500],
})

export const removeTags = defineOperation({
  id: 'template.untag',
  summary: 'Take tags from a template; those that it does not have are no mistake',
  method: 'DELETE',
  path: '/templates/tags',
  auth: 'team',
  body: z
    .object({ name: Text.describe('An id or a name, without a tag'), tags: Tags })
    .meta({ id: 'RemoveTemplateTags' }),
  replies: { 204: { description: 'It has them no more' } },
  errors: [400, 401, 403, 404, 500],
})

const TemplateParams = z.object({
  templateID: Text.describe('An id or a name, percent-encoded'),
})

export const TemplateTag = z
  .object({ tag: z.string(), buildID: z.uuid(), createdAt: Timestamp })
  .meta({ id: 'TemplateTag' })

export const listTags = defineOperation({
  id: 'template.tags',
  summary: 'List the tags of a template and the builds that they mean',
  method: 'GET',
  path: '/templates/{templateID}/tags',
  auth: 'team',
  params: TemplateParams,
  replies: { 200: { description: 'By name', body: z.array(TemplateTag) } },
  errors: [400, 401, 403, 404, 500],
})

export const findAlias = defineOperation({
  id: 'template.alias',
  summary: 'Find out which template a name means, and whether there is one',
  method: 'GET',
  path: '/templates/aliases/{alias}',
  auth: 'team',
  params: z.object({ alias: Text.describe('A name, percent-encoded, with or without a tag') }),
  replies: {
    200: {
      description: 'The template',
      body: z.object({ templateID: z.string(), public: z.boolean() }).meta({ id: 'TemplateAlias' }),
    },
  },
  errors: [400, 401, 403, 404, 500],
})
