/** Server that tests send bad input to, and checks that the input changed nothing. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { envdHeaders, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { cellOf, namesOf } from '../host-state.ts'
import { send } from '../wire.ts'
import type { Call, Reply } from '../wire.ts'

/** A server with one sandbox. */
export interface Target {
  readonly cloud: HttpCloud
  readonly url: string
  readonly sandbox: HttpSandbox
}

/** `prepare` runs before the sandbox is created. */
export async function startTarget(
  prepare: (cloud: HttpCloud) => Promise<void> = async () => {},
): Promise<Target> {
  const cloud = await startCloud({ ATOLL_RUNTIME: 'gvisor', ATOLL_MAX_SANDBOX_SECONDS: '3600' })
  await prepare(cloud)
  return { cloud, url: cloud.installation.url, sandbox: await cloud.createSandbox() }
}

/** Checks that there is no other sandbox than the target's own, and no process in it. */
export async function checkUnchanged(target: Target): Promise<void> {
  const { cloud, sandbox } = target
  const listReply = await cloud.platform('GET', '/v2/sandboxes')
  assert.deepEqual(
    Object(listReply.json).map((entry: HttpSandbox) => entry.sandboxID),
    [sandbox.sandboxID],
  )
  const folders = await readdir(join(cloud.installation.dataDir, 'cells'))
  const names = await namesOf(cloud.installation.dataDir)
  assert.deepEqual(folders, [await cellOf(names, sandbox.sandboxID)])
  const processReply = await callProcess(target, 'List', '{}')
  assert.deepEqual([processReply.status, processReply.text], [200, '{}'])
}

/** Checks that the server is healthy and has logged no error. */
export async function checkHealth({ cloud, url }: Target): Promise<void> {
  const health = await send(url, { path: '/health' })
  assert.deepEqual([health.status, health.text], [200, 'Health check successful'])
  const log = await readFile(join(cloud.installation.dataDir, 'logs/server.log'), 'utf8')
  const lines = log.trim().split('\n')
  assert.ok(lines.length > 50, `The log has only ${lines.length} lines`)
  assert.deepEqual(
    lines.filter((line) => JSON.parse(line).level >= 50),
    [],
  )
}

export function checkRefusal(
  { status, json, text }: Reply,
  expected: number,
  message: RegExp,
): void {
  assert.deepEqual([status, Object(json).code], [expected, expected], text)
  assert.match(Object(json).message, message)
}

/** Request to envd's process service. */
export function toProcessCall(
  method: string,
  headers: Record<string, string>,
  body: string | Uint8Array,
): Call {
  const type = method === 'Start' ? 'application/connect+json' : 'application/json'
  const path = `/process.Process/${method}`
  return { method: 'POST', path, headers: { 'Content-Type': type, ...headers }, body }
}

export function callProcess(
  { url, sandbox }: Target,
  method: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<Reply> {
  return send(url, toProcessCall(method, { ...envdHeaders(sandbox), ...headers }, body))
}
