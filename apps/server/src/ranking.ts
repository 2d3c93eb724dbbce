/** Ranks items by a count and returns one with the highest. Fast while counts change by small steps. */
export interface Ranking<Item> {
  /** Sets the count of an item; 0 removes it. */
  set(item: Item, count: number): void
  /** Returns the item with the highest count; among equals, the one that has had it longest. */
  top(): Item | undefined
}

export function createRanking<Item>(): Ranking<Item> {
  const counts = new Map<Item, number>()
  /** Items by count; the last set is never empty. */
  const places: Set<Item>[] = []
  return {
    set(item, count) {
      const former = counts.get(item) ?? 0
      if (former === count) return
      if (former > 0) places[former - 1]?.delete(item)
      if (count === 0) counts.delete(item)
      else {
        counts.set(item, count)
        while (places.length < count) places.push(new Set())
        places[count - 1]?.add(item)
      }
      while (places.at(-1)?.size === 0) places.pop()
    },
    top: () => places.at(-1)?.values().next().value,
  }
}
