import assert from 'node:assert/strict'
import type { HttpCloud, HttpSandbox } from '../../http-cloud.ts'
import type { Random } from '../../mutations.ts'
import type { Reply } from '../../wire.ts'
import type { AcknowledgedState, AcknowledgedSandbox } from './acknowledged-state.ts'

/** A request whose acknowledgement is a promise, with a check that the promise is kept. */
export interface Work {
  /** Sends the request. The server may die as soon as this resolves. */
  request(): Promise<Reply>
  readonly status: number
  /** Records the promise in the acknowledged right after the acknowledgement. */
  enter?(reply: Reply): void
  /** Checks the promise after the restart. */
  check(reply: Reply): Promise<void>
}

export interface Scene {
  readonly acknowledged: AcknowledgedState
  readonly cloud: HttpCloud
  readonly random: Random
}

/** Sandbox timeout in seconds, longer than any test run. */
export const timeout = 3600

export function post({ cloud }: Scene, path: string, body: object): Promise<Reply> {
  return cloud.platform('POST', path, body)
}

export function pickSandbox({ acknowledged, random }: Scene): AcknowledgedSandbox {
  const { sandboxes } = acknowledged
  return [...sandboxes.values()][random(sandboxes.size)] ?? assert.fail('no sandbox runs')
}

export async function killSandbox(scene: Scene, sandbox: HttpSandbox): Promise<void> {
  const { status, text } = await scene.cloud.platform('DELETE', `/sandboxes/${sandbox.sandboxID}`)
  assert.equal(status, 204, text)
  enterKilled(scene, sandbox)
}

export function enterKilled({ acknowledged }: Scene, { sandboxID }: HttpSandbox): void {
  acknowledged.sandboxes.delete(sandboxID)
  acknowledged.killed.add(sandboxID)
}

export function sandboxIn({ json }: Reply): HttpSandbox {
  return Object(json)
}
