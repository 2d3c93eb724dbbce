/** Idle level of a sandbox. Deeper levels cost less CPU, and timers fire later. */
export type IdleLevel = 'awake' | 'drowsy' | 'asleep'

/** Returns the number of consecutive idle checks, after a check that measured `share` of a core. */
export function countIdleChecks(before: number, share: number): number {
  return share < idleBelow ? before + 1 : 0
}

/** On a crowded node, creates wait for the processor time that idle sandboxes take. */
export function idleLevelAfter(idleChecks: number, isCrowded: boolean): IdleLevel {
  if (isCrowded && idleChecks >= checksPerSecond) return 'asleep'
  if (idleChecks < checksPerSecond * 2) return 'awake'
  return idleChecks < checksPerSecond * 10 ? 'drowsy' : 'asleep'
}

/**
 * Checks per second. Also sets how fast a busy sandbox is back at full speed. One check takes about ten microseconds.
 */
export const checksPerSecond = 2

/**
 * An idle gVisor sandbox takes 2 to 3 % of a core when awake. Reading its log takes up to 20 ms, 4 % of the time
 * between two checks; starting a program takes more.
 *
 * A lower limit for throttled sandboxes would not work: on a full machine everything takes longer, so idle sandboxes
 * would look busy, get exact timers again, and keep the machine full.
 */
const idleBelow = 0.05
