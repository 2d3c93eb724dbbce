import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import type { RawTerminal, TerminalSize } from './terminal.ts'

export interface TerminalSizeSync {
  readonly terminal: Pick<RawTerminal, 'size' | 'onResize'>
  /** The size that the remote terminal was started with. */
  readonly initialSize: TerminalSize
  readonly send: (size: TerminalSize) => Promise<void>
}

/**
 * Sends each change of the terminal size until the signal aborts. Requests are sent one at a time: parallel requests
 * could arrive out of order and leave an older size in place. Outdated sizes are skipped.
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

/** Returns false if the caller should retry. Other faults are ignored: the process has already ended. */
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
