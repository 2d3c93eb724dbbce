import assert from 'node:assert/strict'
import type { HttpCloud, HttpSandbox } from '../../http-cloud.ts'
import type { Random } from '../../mutations.ts'
import type { Reply } from '../../wire.ts'
import type { AcknowledgedState, AcknowledgedSandbox } from './acknowledged-state.ts'

/** A request, with a check that its acknowledged change survives. */
export interface AcknowledgedRequest {
  /** Sends the request. The server may die as soon as this resolves. */
  send(): Promise<Reply>
  readonly status: number
  /** Adds the change to the acknowledged state, right after the response. */
  record?(reply: Reply): void
  /** Checks the change after the restart. */
  check(reply: Reply): Promise<void>
}

export interface RequestContext {
  readonly acknowledged: AcknowledgedState
  readonly cloud: HttpCloud
  readonly random: Random
}

/** Sandbox timeout in seconds, longer than any test run. */
export const timeout = 3600

export function post({ cloud }: RequestContext, path: string, body: object): Promise<Reply> {
  return cloud.platform('POST', path, body)
}

export function pickSandbox({ acknowledged, random }: RequestContext): AcknowledgedSandbox {
  const { sandboxes } = acknowledged
  return [...sandboxes.values()][random(sandboxes.size)] ?? assert.fail('no sandbox runs')
}

export async function killSandbox(context: RequestContext, sandbox: HttpSandbox): Promise<void> {
  const { status, text } = await context.cloud.platform('DELETE', `/sandboxes/${sandbox.sandboxID}`)
  assert.equal(status, 204, text)
  recordKill(context, sandbox)
}

export function recordKill({ acknowledged }: RequestContext, { sandboxID }: HttpSandbox): void {
  acknowledged.sandboxes.delete(sandboxID)
  acknowledged.killed.add(sandboxID)
}

export function sandboxOf({ json }: Reply): HttpSandbox {
  return Object(json)
}
