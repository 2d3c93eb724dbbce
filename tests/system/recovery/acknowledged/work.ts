import assert from 'node:assert/strict'
import type { CloudByHand, HandSandbox } from '../../cloud-by-hand.ts'
import type { Random } from '../../mutations.ts'
import type { Reply } from '../../wire.ts'
import type { Account, AcknowledgedSandbox } from './account.ts'

/** A request whose acknowledgement is a promise, with a check that the promise is kept. */
export interface Work {
  /** Sends the request. The server may die as soon as this resolves. */
  request(): Promise<Reply>
  readonly status: number
  /** Records the promise in the account right after the acknowledgement. */
  enter?(reply: Reply): void
  /** Checks the promise after the restart. */
  check(reply: Reply): Promise<void>
}

export interface Scene {
  readonly account: Account
  readonly cloud: CloudByHand
  readonly random: Random
}

/** Sandbox timeout in seconds, longer than any test run. */
export const timeout = 3600

export function post({ cloud }: Scene, path: string, body: object): Promise<Reply> {
  return cloud.platform('POST', path, body)
}

export function pickSandbox({ account, random }: Scene): AcknowledgedSandbox {
  const { sandboxes } = account
  return [...sandboxes.values()][random(sandboxes.size)] ?? assert.fail('no sandbox runs')
}

export async function killSandbox(scene: Scene, sandbox: HandSandbox): Promise<void> {
  const { status, text } = await scene.cloud.platform('DELETE', `/sandboxes/${sandbox.sandboxID}`)
  assert.equal(status, 204, text)
  enterKilled(scene, sandbox)
}

export function enterKilled({ account }: Scene, { sandboxID }: HandSandbox): void {
  account.sandboxes.delete(sandboxID)
  account.killed.add(sandboxID)
}

export function sandboxIn({ json }: Reply): HandSandbox {
  return Object(json)
}
