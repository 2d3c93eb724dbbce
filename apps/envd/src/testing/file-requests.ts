/** Raw requests to the file endpoints, for tests. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import type { EnvdOptions } from '../envd.ts'
import { accessToken, runEnvd } from './running-envd.ts'
import type { RunningEnvd } from './running-envd.ts'

const accounts = {
  passwd: join(import.meta.dirname, 'accounts/passwd'),
  group: join(import.meta.dirname, 'accounts/group'),
}

/** Starts envd with the users root and anna, and creates a folder to work in. */
export async function setUpFiles(t: TestContext, options: Partial<EnvdOptions> = {}) {
  const envd = await runEnvd({ accounts, ...options })
  t.after(async () => {
    assert.deepEqual(envd.unexpectedErrors, [])
    await envd[Symbol.asyncDispose]()
  })
  const folder = join(envd.folder, 'files')
  await mkdir(folder)
  return { envd, folder, at: (name: string) => join(folder, name) }
}

export interface Call {
  readonly method?: string
  readonly headers?: Record<string, string | string[]>
  readonly body?: string | Buffer
}

/** Sends one request without the headers that fetch adds. */
export async function send(envd: RunningEnvd, path: string, call: Call = {}) {
  const { method = 'GET', headers = {}, body } = call
  const outgoing = request(`${envd.url}${path}`, {
    method,
    agent: false,
    headers: { 'x-access-token': accessToken, ...headers },
  })
  outgoing.end(body)
  const [response]: IncomingMessage[] = await once(outgoing, 'response')
  assert.ok(response)
  outgoing.on('error', () => {}) // reading the response reports errors
  const bytes = await buffer(response)
  return { status: response.statusCode, headers: response.headers, bytes, text: bytes.toString() }
}

export function filesUrl(query: Record<string, string>): string {
  return `/files?${new URLSearchParams(query).toString()}`
}
