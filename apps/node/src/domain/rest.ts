/** How much a sandbox may be left alone. The deeper, the less it costs, and the later its timers are. */
export type Rest = 'awake' | 'drowsy' | 'asleep'

export interface Look {
  /** What the sandbox took of a core since the look before. */
  readonly share: number
  /** The machine has hardly a processor to spare. */
  readonly isCrowded: boolean
}

/** The looks in a row at which a sandbox did next to nothing, after another one. */
export function countCalmLooks(before: number, { share, isCrowded }: Look): number {
  // In a crowd everything takes more, and exact timers are not to be had: what is not clearly busy is to make room.
  const limit = isCrowded ? calmBelow.awake : calmBelow[restAfter(before)]
  return share < limit ? before + 1 : 0
}

export function restAfter(calmLooks: number): Rest {
  if (calmLooks < looksPerSecond * 2) return 'awake'
  return calmLooks < looksPerSecond * 10 ? 'drowsy' : 'asleep'
}

/** So soon a sandbox is awake that begins to work, at full speed. A look at one takes some ten microseconds. */
export const looksPerSecond = 2

/**
 * An idle gVisor sandbox takes 2 to 3 % of a core awake, some 0.7 % drowsy and 0.2 % asleep. A question for its log takes
 * up to 20 ms, 4 % of the time between two looks; the start of a program takes more.
 */
const calmBelow = { awake: 0.05, drowsy: 0.04, asleep: 0.04 } as const
