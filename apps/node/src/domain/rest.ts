/** How much a sandbox may be left alone. The deeper, the less it costs, and the later its timers are. */
export type Rest = 'awake' | 'drowsy' | 'asleep'

/** The looks in a row at which a sandbox did next to nothing, after another one at which it took `share` of a core. */
export function countCalmLooks(before: number, share: number): number {
  return share < calmBelow ? before + 1 : 0
}

export function restAfter(calmLooks: number): Rest {
  if (calmLooks < looksPerSecond * 2) return 'awake'
  return calmLooks < looksPerSecond * 10 ? 'drowsy' : 'asleep'
}

/** So soon a sandbox is awake that begins to work, at full speed. A look at one takes some ten microseconds. */
export const looksPerSecond = 2

/**
 * An idle gVisor sandbox takes 2 to 3 % of a core awake, and a question for its log up to 20 ms, 4 % of the time between two
 * looks; the start of a program takes more. A lower limit once one rests would not do: on a full machine everything takes
 * longer, idle ones would look busy, be given exact timers again, and keep the machine full.
 */
const calmBelow = 0.05
