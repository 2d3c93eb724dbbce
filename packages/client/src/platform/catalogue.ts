import { CatalogueTemplate } from '@atoll/contracts/templates/catalogue'
import { z } from 'zod'
import { readReply } from './read-reply.ts'
import type { CatalogueEntry } from '../replies.ts'
import { sendRequest } from './request.ts'
import type { CallOptions, PlatformOptions } from './request.ts'

/** Operations on the built-in templates that are installed on demand. */
export interface CatalogueCalls {
  listCatalogue(call?: CallOptions): Promise<readonly CatalogueEntry[]>
  /** Starts an install in the background, or joins one. Uses the operator's token if there is one. */
  installTemplate(name: string, call?: CallOptions): Promise<CatalogueEntry>
}

export function catalogueCalls(options: PlatformOptions): CatalogueCalls {
  const admin = options.adminToken === undefined ? '' : '/admin'
  return {
    async listCatalogue(call) {
      const reply = await sendRequest(options, { method: 'GET', path: '/catalogue', ...call })
      return readReply(z.array(CatalogueTemplate), reply)
    },
    async installTemplate(name, call) {
      const path = `${admin}/catalogue/${encodeURIComponent(name)}/install`
      const request = { method: 'POST', path, isOperator: true, ...call } as const
      return readReply(CatalogueTemplate, await sendRequest(options, request))
    },
  }
}
