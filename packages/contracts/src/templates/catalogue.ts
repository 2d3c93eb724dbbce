import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Text } from '../schemas/text.ts'

export const CatalogueTemplate = z
  .object({
    name: z.string().describe('Name in the catalogue'),
    templateName: z.string().describe('Name to create sandboxes by, once it is installed'),
    description: z.string(),
    state: z
      .enum(['absent', 'installing', 'installed', 'failed'])
      .describe('`failed`: the last install failed, and the next one starts again'),
    progress: z
      .object({ label: z.string(), percent: z.int().min(0).max(100) })
      .optional()
      .describe('Only while the template is being installed'),
    failure: z.string().optional().describe('Only if the last install failed'),
  })
  .meta({ id: 'CatalogueTemplate' })

const Params = z.object({
  name: Text.describe('Name in the catalogue, or the name of its template'),
})

const installReplies = {
  202: { description: 'The install runs, or the template is installed', body: CatalogueTemplate },
}

export const listCatalogue = defineOperation({
  id: 'catalogue.list',
  summary: 'List the built-in templates that can be installed, with the progress of installs',
  method: 'GET',
  path: '/catalogue',
  auth: 'team',
  replies: {
    200: { description: 'All templates of the catalogue', body: z.array(CatalogueTemplate) },
  },
  errors: [401, 500, 503],
})

export const installTemplate = defineOperation({
  id: 'catalogue.install',
  summary:
    'Install a built-in template in the background, for all teams; 409 if only operators may do so',
  method: 'POST',
  path: '/catalogue/{name}/install',
  auth: 'team',
  params: Params,
  replies: installReplies,
  errors: [400, 401, 404, 409, 500, 503],
})

export const installTemplateAsOperator = defineOperation({
  id: 'admin.catalogue.install',
  summary: 'Install a built-in template in the background, for all teams',
  method: 'POST',
  path: '/admin/catalogue/{name}/install',
  auth: 'admin',
  params: Params,
  replies: installReplies,
  errors: [400, 404, 500, 503],
})
