/**
 * Finds the running sandbox whose token signed a URL. A signature does not name its sandbox, so every token is tried,
 * at about 6 µs each. Threats: any client may ask, and a signature that matches no token costs the most. Therefore one
 * search runs at a time, in slices that yield to other work; a failed search is followed by a pause of three times its
 * duration, and the queue is short. Known signatures are cached and cost nothing.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { statesShownAs } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import { signatureMatcher } from '../../domain/signature.ts'
import type { SignedFile } from '../../domain/signature.ts'

/**
 * Returns the sandbox ID, or undefined when no running sandbox signed the file. Throws an `exhausted` fault when the
 * queue is full.
 */
export type FindSigner = (file: SignedFile) => Promise<string | undefined>

export function createFindSigner(ports: {
  readonly store: Pick<SandboxStore, 'listByState'>
  readonly tokenOf: (sandboxId: string) => string
}): FindSigner {
  const found = new Map<string, string>()
  const oneAtATime = limitConcurrency(1)
  let tokens = new Map<string, string>()
  let waiting = 0

  return async (file) => {
    const known = found.get(file.signature)
    if (known !== undefined) return known
    const matches = signatureMatcher(file)
    if (!matches) return undefined
    if (waiting >= waitingLimit) {
      throw new Fault(
        'exhausted',
        'too_many_signatures',
        'Too many requests with unknown signatures at once; try again later',
      )
    }
    waiting += 1
    const answer = Promise.withResolvers<string | undefined>()
    const turn = oneAtATime(async () => {
      const began = performance.now()
      const sandboxId = await search(matches).finally(() => (waiting -= 1))
      if (sandboxId !== undefined) remember(file.signature, sandboxId)
      answer.resolve(sandboxId)
      const tookMs = performance.now() - began
      if (sandboxId === undefined) await sleep(restFactor * tookMs, undefined, { ref: false })
    })
    turn.catch(answer.reject)
    return answer.promise
  }

  async function search(matches: (token: string) => boolean): Promise<string | undefined> {
    await refreshTokens()
    let tried = 0
    for (const [sandboxId, token] of tokens) {
      if (matches(token)) return sandboxId
      tried += 1
      if (tried % sliceLength === 0) await nextTurn()
    }
    return undefined
  }

  /** Loads the tokens of all running sandboxes; each token is computed once. */
  async function refreshTokens(): Promise<void> {
    const running = await ports.store.listByState(statesShownAs('running'))
    const fresh = new Map<string, string>()
    for (const { id } of running) fresh.set(id, tokens.get(id) ?? ports.tokenOf(id))
    tokens = fresh
  }

  function remember(signature: string, sandboxId: string): void {
    found.set(signature, sandboxId)
    const [oldest] = found.keys()
    if (found.size > rememberedLimit && oldest !== undefined) found.delete(oldest)
  }
}

const waitingLimit = 64
const sliceLength = 200
const restFactor = 3
const rememberedLimit = 1000
