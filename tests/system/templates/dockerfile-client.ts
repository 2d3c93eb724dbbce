/** Builds by `POST /templates`, by plain HTTP. */
import assert from 'node:assert/strict'
import { waitFor } from '@atoll/kit/wait'
import type { Installation } from '../installation.ts'
import { send } from '../wire.ts'

export interface StartedBuild {
  readonly template: {
    readonly templateID: string
    readonly buildID: string
    readonly diskSizeMB: number
  }
  progress(): Promise<BuildState>
}

export interface BuildState {
  readonly status: string
  readonly reason: string
  readonly lines: readonly string[]
}

export async function callApi(
  { url, accessToken }: Installation,
  method: string,
  path: string,
  given: { readonly body?: object; readonly as?: object } = {},
) {
  const { body, as = { authorization: `Bearer ${accessToken}` } } = given
  const reply = await send(url, {
    method,
    path,
    headers: { 'content-type': 'application/json', ...as },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { ...reply, json: Object(reply.json) }
}

/** `as` has the credentials; by default the access token of the first user. */
export async function startDockerfile(
  installation: Installation,
  dockerfile: string,
  fields: object = {},
  as?: object,
): Promise<StartedBuild> {
  const caller = as && { as }
  const body = { dockerfile, cpuCount: 1, memoryMB: 256, ...fields }
  const reply = await callApi(installation, 'POST', '/templates', { body, ...caller })
  assert.equal(reply.status, 202, reply.text)
  const { templateID, buildID } = reply.json
  const path = `/templates/${templateID}/builds/${buildID}/status`
  return {
    template: reply.json,
    async progress() {
      const { json } = await callApi(installation, 'GET', path, caller)
      const lines = json.logEntries.map(({ message }: { message: string }) => message)
      return { status: json.status, reason: json.reason?.message ?? '', lines }
    },
  }
}

/** Builds a template and waits for the end of the build. */
export async function buildDockerfile(...request: Parameters<typeof startDockerfile>) {
  const { template, progress } = await startDockerfile(...request)
  const end = await waitFor('the end of the build', async () => {
    const state = await progress()
    return (state.status === 'ready' || state.status === 'error') && state
  })
  return { template, ...end }
}
