import assert from 'node:assert/strict'
import { startApiUnderTest } from './api.ts'
import type { ApiOptions, ApiUnderTest, Reply } from './api.ts'

/** API calls of a client that takes and deletes snapshots. */

/** Starts an API with one sandbox; `slug` is the namespace of its team. */
export async function startWithSandbox(options: ApiOptions = {}) {
  const api = await startApiUnderTest(options)
  const slug = await api.withStores(async ({ teams }) => {
    return (await teams.find(api.ours.teamId))?.slug ?? assert.fail('no team')
  })
  return { api, slug, id: await api.create({ timeout: 300 }) }
}

/** Requests a snapshot. */
export function snapshot(api: ApiUnderTest, id: string, name?: string) {
  return api.call('POST', `/sandboxes/${id}/snapshots`, {
    body: name === undefined ? {} : { name },
  })
}

/** Takes a snapshot and returns its ID. */
export async function takeSnapshot(api: ApiUnderTest, id: string, name?: string): Promise<string> {
  const { status, json, text } = await snapshot(api, id, name)
  assert.equal(status, 201, text)
  return Object(json).snapshotID
}

export function deleteTemplate(api: ApiUnderTest, reference: string, apiKey = api.ours.apiKey) {
  const headers = { 'x-api-key': apiKey }
  return api.call('DELETE', `/templates/${encodeURIComponent(reference)}`, { headers })
}

/** Returns snapshot IDs. */
export async function listSnapshots(api: ApiUnderTest, query = ''): Promise<string[]> {
  const { status, json, text } = await api.call('GET', `/snapshots${query}`)
  assert.equal(status, 200, text)
  return Object(json).map(({ snapshotID }: { snapshotID: string }) => snapshotID)
}

/** Returns the status and the code in the body. */
export function codes({ status, json }: Reply): unknown[] {
  return [status, Object(json).code]
}
