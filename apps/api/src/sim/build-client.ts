import assert from 'node:assert/strict'
import { waitFor } from '@atoll/kit/wait'
import type { ApiUnderTest, Reply } from './api.ts'

/** API calls of a client that builds a template. */

export interface RequestedBuild {
  readonly templateId: string
  readonly buildId: string
}

export async function requestBuild(
  api: ApiUnderTest,
  fields: object = {},
): Promise<RequestedBuild> {
  const body = { name: 'mine', ...fields }
  const { status, json, text } = await api.call('POST', '/v3/templates', { body })
  assert.equal(status, 202, text)
  const { templateID: templateId, buildID: buildId } = Object(json)
  return { templateId, buildId }
}

export function startBuild(
  api: ApiUnderTest,
  { templateId, buildId }: RequestedBuild,
  body: object = { fromTemplate: 'base' },
  apiKey = api.ours.apiKey,
): Promise<Reply> {
  const path = `/v2/templates/${templateId}/builds/${buildId}`
  return api.call('POST', path, { body, headers: { 'x-api-key': apiKey } })
}

export function buildStatus(
  api: ApiUnderTest,
  { templateId, buildId }: RequestedBuild,
  query = '',
  apiKey = api.ours.apiKey,
): Promise<Reply> {
  const path = `/templates/${templateId}/builds/${buildId}/status${query}`
  return api.call('GET', path, { headers: { 'x-api-key': apiKey } })
}

/** Waits for the end of the build and returns its status. */
export async function waitForBuild(api: ApiUnderTest, asked: RequestedBuild) {
  let json: unknown
  await waitFor('the end of the build', async () => {
    ;({ json } = await buildStatus(api, asked))
    return ['ready', 'error'].includes(Object(json).status)
  })
  return Object(json)
}

/** Requests and starts a build, and waits for its end. */
export async function build(api: ApiUnderTest, fields: object = {}, recipe?: object) {
  const asked = await requestBuild(api, fields)
  const { status, text } = await startBuild(api, asked, recipe)
  assert.equal(status, 202, text)
  return { ...asked, end: await waitForBuild(api, asked) }
}
