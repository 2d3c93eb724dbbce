import { TemplateBuildInfo } from '@atoll/contracts/builds/progress'
import { TemplateBuildRequest } from '@atoll/contracts/builds/request'
import type { requestBuild, startBuild } from '@atoll/contracts/builds/request'
import { z } from 'zod'
import { faultFromReply } from '../http-fault.ts'
import type { BuildInfo } from '../replies.ts'
import type { TransferBody } from '../transfer.ts'
import { readReply } from './read-reply.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'
import { templatePath } from './templates.ts'

/** A build takes three steps: request it, upload the files of its COPY steps, start it. */
export interface BuildCalls {
  requestBuild(build: NewBuild, call?: CallOptions): Promise<RequestedBuild>
  /** Checks whether the files of a COPY step are already on the server, and where to upload them. */
  findBuildFiles(
    templateId: string,
    filesHash: string,
    call?: CallOptions,
  ): Promise<{ readonly present: boolean; readonly url: string }>
  /** Uploads a tar archive, plain or gzipped, to a URL of `findBuildFiles`. */
  uploadBuildFiles(url: string, archive: TransferBody, call?: CallOptions): Promise<void>
  startBuild(build: BuildReference, recipe: BuildRecipe, call?: CallOptions): Promise<void>
  /** Gets the status and up to 100 log entries from `logsOffset` on. */
  getBuildStatus(build: BuildReference, logsOffset?: number, call?: CallOptions): Promise<BuildInfo>
}

export type NewBuild = z.input<typeof requestBuild.body>
export type RequestedBuild = z.infer<typeof TemplateBuildRequest>
export type BuildRecipe = z.input<typeof startBuild.body>
export type BuildReference = Pick<RequestedBuild, 'templateID' | 'buildID'>

const BuildFiles = z.object({ present: z.boolean(), url: z.url({ protocol: /^https?$/ }) })

export function buildCalls(options: PlatformOptions): BuildCalls {
  return {
    async requestBuild(body, call) {
      const request = { method: 'POST', path: '/v3/templates', body, ...call } as const
      return readReply(TemplateBuildRequest, await sendRequest(options, request))
    },
    async findBuildFiles(templateId, filesHash, call) {
      const path = `${templatePath(templateId)}/files/${encodeURIComponent(filesHash)}`
      const reply = await sendRequest(options, { method: 'GET', path, ...call })
      return readReply(BuildFiles, reply)
    },
    async uploadBuildFiles(url, archive, call) {
      // Loaded on demand: node:http and node:https take longer than all the rest of this client.
      const { readText, transfer } = await import('../transfer.ts')
      const reply = await transfer({ method: 'PUT', url, headers: {}, body: archive, ...call })
      const text = await readText(reply)
      if (reply.status >= 300) throw faultFromReply(reply.status, parseJson(text))
    },
    async startBuild(build, body, call) {
      const path = `/v2${buildPath(build)}`
      await sendRequest(options, { method: 'POST', path, body, ...call })
    },
    async getBuildStatus(build, logsOffset = 0, call = {}) {
      const query = { logsOffset: String(logsOffset) }
      const path = `${buildPath(build)}/status`
      const reply = await sendRequest(options, { method: 'GET', path, query, ...call })
      return readReply(TemplateBuildInfo, reply)
    },
  }
}

function buildPath({ templateID, buildID }: BuildReference): string {
  return `${templatePath(templateID)}/builds/${encodeURIComponent(buildID)}`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
