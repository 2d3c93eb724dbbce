import assert from 'node:assert/strict'
import { startApiUnderTest } from './api.ts'
import type { ApiOptions, ApiUnderTest, Reply } from './api.ts'

/** API calls of a client that resumes a paused sandbox. */

/** Starts an API with one paused sandbox; `created` is the response to its creation. */
export async function startWithPaused(options: ApiOptions & { readonly memory?: boolean } = {}) {
  const api = await startApiUnderTest(options)
  const created = await api.call('POST', '/v2/sandboxes', {
    body: { templateID: 'base', timeout: 100 },
  })
  const id: string = Object(created.json).sandboxID
  const body = { memory: options.memory ?? true }
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`, { body })).status, 204)
  return { api, id, created: created.json }
}

/** Requests that resume a sandbox. */
export const resumeCalls = {
  connect: (api: ApiUnderTest, id: string, body: object = {}) =>
    api.call('POST', `/sandboxes/${id}/connect`, { body: { timeout: 60, ...body } }),
  connectV2: (api: ApiUnderTest, id: string, body?: object) =>
    api.call('POST', `/v2/sandboxes/${id}/connect`, body && { body }),
  resume: (api: ApiUnderTest, id: string, body?: object) =>
    api.call('POST', `/sandboxes/${id}/resume`, body && { body }),
} as const

export async function detail(api: ApiUnderTest, id: string) {
  return Object((await api.call('GET', `/sandboxes/${id}`)).json)
}

/** Returns the status and both codes in the body. */
export function codes({ status, json }: Reply): unknown[] {
  return [status, Object(json).code, Object(json).error_code]
}
