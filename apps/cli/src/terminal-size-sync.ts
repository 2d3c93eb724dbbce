import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import type { RawTerminal, TerminalSize } from './terminal.ts'

export interface TerminalSizeSync {
  readonly terminal: Pick<RawTerminal, 'size' | 'onResize'>
  /** What the other side knows already. */
  readonly initialSize: TerminalSize
  readonly send: (size: TerminalSize) => Promise<void>
}

/**
 * Tells each change of the size until the signal aborts, one at a time: requests side by side can overtake each other,
 * and an older size would stay. What is outdated before its turn comes is left out.
 */
export async function syncTerminalSize(sync: TerminalSizeSync, signal: AbortSignal): Promise<void> {
  const { terminal, send } = sync
  let sent = sync.initialSize
  let change = Promise.withResolvers<void>()
  terminal.onResize(() => change.resolve())
  signal.addEventListener('abort', () => change.resolve())
  while (!signal.aborted) {
    const size = terminal.size()
    if (isSame(size, sent)) {
      await change.promise
      change = Promise.withResolvers()
    } else if (await trySend(send, size)) {
      sent = size
    } else {
      await sleep(retryMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}

const retryMs = 500

/** False when it is worth another try. Where there is nothing to resize any more, there is nothing to tell. */
async function trySend(send: TerminalSizeSync['send'], size: TerminalSize): Promise<boolean> {
  try {
    await send(size)
    return true
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    return !transientFaults.has(thrown.kind)
  }
}

const transientFaults: ReadonlySet<FaultKind> = new Set(['unavailable', 'timeout', 'exhausted'])

function isSame(one: TerminalSize, other: TerminalSize): boolean {
  return one.cols === other.cols && one.rows === other.rows
}
