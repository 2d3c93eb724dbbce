import { Template, TemplateWithBuilds } from '@atoll/contracts/templates/manage'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import { readPages, readReply } from './read-reply.ts'
import type * as replies from '../replies.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'

/** Operations on templates. A reference is an ID or a name. Tags and deletes are the same as those of snapshots. */
export interface TemplateCalls {
  /** Lists the templates of the team and of the installation, newest first. */
  listTemplates(call?: CallOptions): AsyncIterable<replies.Template>
  /** Gets a template of the team with all its builds, newest first. */
  getTemplate(reference: string, call?: CallOptions): Promise<replies.TemplateWithBuilds>
  /** Returns whether the team can build on this template: its own, a public one, or one of the installation. */
  mayUseTemplate(reference: string, call?: CallOptions): Promise<boolean>
}

export function templateCalls(options: PlatformOptions): TemplateCalls {
  return {
    listTemplates(call = {}) {
      return readPages(Template, options, { path: '/v2/templates', ...call })
    },
    async getTemplate(reference, call) {
      const path = templatePath(reference)
      const builds: replies.TemplateWithBuilds['builds'] = []
      let nextToken: string | undefined
      for (;;) {
        const query = { nextToken }
        const reply = await sendRequest(options, { method: 'GET', path, query, ...call })
        const page = readReply(TemplateWithBuilds, reply)
        builds.push(...page.builds)
        nextToken = reply.headers.get('x-next-token') || undefined
        if (!nextToken) return { ...page, builds }
      }
    },
    async mayUseTemplate(reference, call) {
      const path = `/templates/aliases/${encodeURIComponent(reference)}`
      try {
        await sendRequest(options, { method: 'GET', path, ...call })
        return true
      } catch (thrown) {
        if (thrown instanceof Fault && absent.has(thrown.kind)) return false
        throw thrown
      }
    },
  }
}

/** A private template of another team looks like one that does not exist. */
const absent: ReadonlySet<FaultKind> = new Set(['not_found', 'forbidden'])

export function templatePath(reference: string): string {
  return `/templates/${encodeURIComponent(reference)}`
}
