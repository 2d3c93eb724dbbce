/** Finds the item with the highest count. Calls take constant time while counts change in small steps. */
export interface Ranking<Item> {
  /** Sets the count of an item; 0 removes it. */
  set(item: Item, count: number): void
  /** Returns the item with the highest count; among equals, the item that has had this count longest. */
  top(): Item | undefined
}

export function createRanking<Item>(): Ranking<Item> {
  const counts = new Map<Item, number>()
  /** Items with the count `index + 1`. The last set is never empty. */
  const itemsByCount: Set<Item>[] = []
  return {
    set(item, count) {
      const previous = counts.get(item) ?? 0
      if (previous === count) return
      if (previous > 0) itemsByCount[previous - 1]?.delete(item)
      if (count === 0) counts.delete(item)
      else {
        counts.set(item, count)
        while (itemsByCount.length < count) itemsByCount.push(new Set())
        itemsByCount[count - 1]?.add(item)
      }
      while (itemsByCount.at(-1)?.size === 0) itemsByCount.pop()
    },
    top: () => itemsByCount.at(-1)?.values().next().value,
  }
}
