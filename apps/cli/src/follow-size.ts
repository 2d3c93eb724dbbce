import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import type { RawTerminal, TerminalSize } from './terminal.ts'

export interface FollowedTerminal {
  readonly terminal: Pick<RawTerminal, 'size' | 'onResize'>
  /** What the other side knows already. */
  readonly known: TerminalSize
  readonly tell: (size: TerminalSize) => Promise<void>
}

/**
 * Tells each change of the size until the signal aborts, one at a time: requests side by side can overtake each other,
 * and an older size would stay. What is outdated before its turn comes is left out.
 */
export async function followSize(followed: FollowedTerminal, signal: AbortSignal): Promise<void> {
  const { terminal, tell } = followed
  let known = followed.known
  let change = Promise.withResolvers<void>()
  terminal.onResize(() => change.resolve())
  signal.addEventListener('abort', () => change.resolve())
  while (!signal.aborted) {
    const size = terminal.size()
    if (isSame(size, known)) {
      await change.promise
      change = Promise.withResolvers()
    } else if (await isTold(tell, size)) {
      known = size
    } else {
      await sleep(retryMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}

const retryMs = 500

/** False when it is worth another try. Where there is nothing to resize any more, there is nothing to tell. */
async function isTold(tell: FollowedTerminal['tell'], size: TerminalSize): Promise<boolean> {
  try {
    await tell(size)
    return true
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    return !passing.has(thrown.kind)
  }
}

const passing: ReadonlySet<FaultKind> = new Set(['unavailable', 'timeout', 'exhausted'])

function isSame(one: TerminalSize, other: TerminalSize): boolean {
  return one.cols === other.cols && one.rows === other.rows
}
