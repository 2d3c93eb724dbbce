import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { TemplateLegacy } from '../templates/manage.ts'
import { Text } from '../schemas/text.ts'

/** Building a template takes three steps: request a build, upload its files, start it. */

const nameLimit = 128
const tagLimit = 100

const BuildResources = {
  cpuCount: z
    .int32()
    .min(1)
    .max(32)
    .refine((count) => count === 1 || count % 2 === 0, { error: 'must be 1 or an even number' })
    .optional()
    .describe('CPU cores of a sandbox: 1 or an even number; 2 by default'),
  memoryMB: z
    .int32()
    .min(128)
    .refine((size) => size % 2 === 0, { error: 'must be an even number' })
    .optional()
    .describe('Memory of a sandbox in MiB: an even number; 1024 by default'),
}

export const TemplateBuildRequest = z
  .object({
    templateID: z.string(),
    buildID: z.uuid(),
    public: z.boolean(),
    names: z.array(z.string()).describe('`namespace/alias`, or `alias` without a namespace'),
    tags: z.array(z.string()).describe('Tags that will point to this build once it is ready'),
    aliases: z.array(z.string()).meta({ deprecated: true }),
  })
  .meta({ id: 'TemplateRequestResponseV3' })

const Name = Text.max(nameLimit, { error: `must be at most ${nameLimit} characters` })

export const requestBuild = defineOperation({
  id: 'template.create',
  summary: 'Request a build of a template; creates the template if the name is new',
  method: 'POST',
  path: '/v3/templates',
  auth: 'team',
  body: z
    .object({
      name: Name.optional().describe('`[namespace/]alias[:tag]`; required'),
      alias: Name.optional().meta({ deprecated: true }).describe('Old form of `name`'),
      tags: z
        .array(Text)
        .max(tagLimit, { error: `must be at most ${tagLimit}` })
        .optional()
        .describe('Tags besides the one in `name`; `default` if there is none'),
      ...BuildResources,
      minFreeDiskMb: z
        .int32()
        .min(0)
        .optional()
        .describe('Minimum disk of a sandbox in MiB; by default that of the parent'),
      teamID: Text.optional().meta({ deprecated: true }),
    })
    .meta({ id: 'TemplateBuildRequestV3' }),
  replies: {
    202: { description: 'The build waits for its files and its start', body: TemplateBuildRequest },
  },
  errors: [400, 401, 403, 409, 500],
})

export const requestBuildV2 = defineOperation({
  id: 'template.createV2',
  summary: 'Ask for a build of a template (deprecated: use /v3/templates)',
  method: 'POST',
  path: '/v2/templates',
  auth: 'team',
  body: z
    .object({
      alias: Name.describe('`[namespace/]alias[:tag]`'),
      teamID: Text.optional(),
      ...BuildResources,
    })
    .meta({ id: 'TemplateBuildRequestV2' }),
  replies: {
    202: { description: 'The build waits for its files and its start', body: TemplateLegacy },
  },
  errors: [400, 401, 403, 409, 500, 503],
})

/** Path of the upload URLs. Uploads may be large and slow. */
export const buildFilesPath = '/build-files'

export const BuildParams = z.object({
  templateID: Text.describe('ID or name, percent-encoded'),
  buildID: z.uuid({
    error: 'must be a UUID: the `buildID` that the request for the build returned',
  }),
})

export const findBuildFiles = defineOperation({
  id: 'template.files',
  summary: 'Check whether files for a build exist, and get the upload URL',
  method: 'GET',
  path: '/templates/{templateID}/files/{hash}',
  auth: 'team',
  params: z.object({
    templateID: Text.describe('ID or name, percent-encoded'),
    hash: z.string().regex(/^[0-9a-f]{64}$/, { error: 'must be 64 hexadecimal digits' }),
  }),
  replies: {
    201: {
      description: 'Whether the files exist, and where to upload them',
      body: z
        .object({
          present: z.boolean(),
          url: z
            .string()
            .describe('Accepts a PUT of a tar archive, plain or gzipped, for 30 minutes'),
        })
        .meta({ id: 'TemplateBuildFileUpload' }),
    },
  },
  errors: [400, 401, 403, 404, 500, 503],
})

const Step = z
  .object({
    type: Text.describe('RUN, COPY, ADD, USER, WORKDIR, ENV or ARG'),
    args: z.array(Text).optional(),
    filesHash: z
      .string()
      .regex(/^[0-9a-f]{64}$/, { error: 'must be 64 hexadecimal digits' })
      .optional()
      .describe('Hash of the files that this step copies'),
    force: z
      .boolean()
      .optional()
      .describe('Do not use the build cache for this and all later steps'),
  })
  .meta({ id: 'TemplateStep' })

const stepLimit = 1_000

const RegistryLogin = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('registry'), username: Text, password: Text }),
    z.object({ type: z.literal('gcp'), serviceAccountJson: Text }),
    z.object({
      type: z.literal('aws'),
      awsAccessKeyId: Text,
      awsSecretAccessKey: Text,
      awsRegion: Text,
    }),
  ])
  .describe('Credentials for the image registry; not stored')

export const startBuild = defineOperation({
  id: 'template.build',
  summary: 'Start a waiting build; cancels other builds of the same tag',
  method: 'POST',
  path: '/v2/templates/{templateID}/builds/{buildID}',
  auth: 'team',
  params: BuildParams,
  body: z
    .object({
      fromImage: Text.optional().describe(
        'Reference as `docker pull` accepts it; `e2bdev/base` is the template `base`',
      ),
      fromImageRegistry: RegistryLogin.optional(),
      fromTemplate: Text.optional().describe('ID or name, with an optional tag'),
      force: z.boolean().optional().describe('Do not use the build cache'),
      steps: z
        .array(Step)
        .max(stepLimit, { error: `must be at most ${stepLimit}` })
        .optional(),
      startCmd: Text.optional().describe('Command that is already running in new sandboxes'),
      readyCmd: Text.optional().describe('Command that succeeds once a sandbox is ready'),
    })
    .meta({ id: 'TemplateBuildStartV2' }),
  replies: { 202: { description: 'The build has started' } },
  errors: [400, 401, 403, 404, 500, 503],
})
