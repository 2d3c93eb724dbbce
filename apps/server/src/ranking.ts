/** Keeps items by a count and names one with the highest. Cheap as long as counts change by small steps. */
export interface Ranking<Item> {
  /** An item with the count 0 is forgotten. */
  set(item: Item, count: number): void
  /** Of several with the same count, the one that has had it for longest. */
  top(): Item | undefined
}

export function createRanking<Item>(): Ranking<Item> {
  const counts = new Map<Item, number>()
  /** Items by their count; the last place is never empty. */
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
