import { setTimeout as sleep } from 'node:timers/promises'

/** Longer than a handshake takes, so that a thousand of them leave time for other work. */
const gapMs = 5

let lastTurn: Promise<void> = Promise.resolve()

/**
 * Resolves when this process may begin another handshake. After a start, an api or an edge dials all nodes: at once, most of
 * the handshakes would take longer than their limit, and be repeated. Turns are counted by timers, so a process with too much
 * work dials more slowly.
 */
export function waitForDialTurn(): Promise<void> {
  const turn = lastTurn
  lastTurn = turn.then(() => sleep(gapMs))
  return turn
}
