import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { TemplateLegacy } from '../templates/manage.ts'
import { Text } from '../schemas/text.ts'

/** How a template is made: a build is asked for, its files are brought, then it is started. */

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

const TemplateBuildRequest = z
  .object({
    templateID: z.string(),
    buildID: z.uuid(),
    public: z.boolean(),
    names: z.array(z.string()).describe('As `namespace/alias` where they have a namespace'),
    tags: z.array(z.string()).describe('What will mean this build once it is ready'),
    aliases: z.array(z.string()).meta({ deprecated: true }),
  })
  .meta({ id: 'TemplateRequestResponseV3' })

const Name = Text.max(nameLimit, { error: `must be at most ${nameLimit} characters` })

export const requestBuild = defineOperation({
  id: 'template.create',
  summary: 'Ask for a build of a template, which is made if there is none of this name',
  method: 'POST',
  path: '/v3/templates',
  auth: 'team',
  body: z
    .object({
      name: Name.optional().describe('`[namespace/]alias[:tag]`; required'),
      alias: Name.optional().meta({ deprecated: true }).describe('In place of `name`'),
      tags: z
        .array(Text)
        .max(tagLimit, { error: `must be at most ${tagLimit}` })
        .optional()
        .describe('Besides the one in `name`; without any it is `default`'),
      ...BuildResources,
      minFreeDiskMb: z
        .int32()
        .min(0)
        .optional()
        .describe('The least disk of a sandbox in MiB; by default that of what it is built from'),
      teamID: Text.optional().meta({ deprecated: true }),
    })
    .meta({ id: 'TemplateBuildRequestV3' }),
  replies: {
    202: { description: 'It waits for its files and its start', body: TemplateBuildRequest },
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
  replies: { 202: { description: 'It waits for its files and its start', body: TemplateLegacy } },
  errors: [400, 401, 403, 409, 500, 503],
})

/** Where the URLs that it gives lead: what is sent there may be large, and may take its time. */
export const buildFilesPath = '/build-files'

export const BuildParams = z.object({
  templateID: Text.describe('An id or a name, percent-encoded'),
  buildID: z.uuid({
    error: 'must be a UUID: the `buildID` that the request for the build returned',
  }),
})

export const findBuildFiles = defineOperation({
  id: 'template.files',
  summary: 'Find out whether files for a build are there, and where to send them',
  method: 'GET',
  path: '/templates/{templateID}/files/{hash}',
  auth: 'team',
  params: z.object({
    templateID: Text.describe('An id or a name, percent-encoded'),
    hash: z.string().regex(/^[0-9a-f]{64}$/, { error: 'must be 64 hexadecimal digits' }),
  }),
  replies: {
    201: {
      description: 'The team has them, or may send them',
      body: z
        .object({
          present: z.boolean(),
          url: z
            .string()
            .describe('Takes a PUT of a tar archive, plain or packed by gzip, for 30 minutes'),
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
      .describe('Of the files that it brings in'),
    force: z.boolean().optional().describe('Nothing of earlier builds is used from here on'),
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
  .describe('Who may have the image; it is not kept')

export const startBuild = defineOperation({
  id: 'template.build',
  summary: 'Start a build that waits; others of the same tag that are under way are cancelled',
  method: 'POST',
  path: '/v2/templates/{templateID}/builds/{buildID}',
  auth: 'team',
  params: BuildParams,
  body: z
    .object({
      fromImage: Text.optional().describe(
        'As `docker pull` takes it; `e2bdev/base` is the template `base`',
      ),
      fromImageRegistry: RegistryLogin.optional(),
      fromTemplate: Text.optional().describe('An id or a name, with or without a tag'),
      force: z.boolean().optional().describe('Nothing of earlier builds is used'),
      steps: z
        .array(Step)
        .max(stepLimit, { error: `must be at most ${stepLimit}` })
        .optional(),
      startCmd: Text.optional().describe('What new sandboxes have running from the beginning'),
      readyCmd: Text.optional().describe('Succeeds once a sandbox is ready'),
    })
    .meta({ id: 'TemplateBuildStartV2' }),
  replies: { 202: { description: 'It is under way' } },
  errors: [400, 401, 403, 404, 500, 503],
})
