/** Values by node ID, whose IDs are listed without work that grows with the fleet. */
export interface Reach<T> {
  get(id: string): T | undefined
  has(id: string): boolean
  set(id: string, value: T): void
  delete(id: string): void
  /** Returns the same array until a node comes, goes or is replaced. */
  ids(): readonly string[]
  entries(): Iterable<readonly [string, T]>
}

export function createReach<T>(): Reach<T> {
  const values = new Map<string, T>()
  let ids: readonly string[] | undefined
  return {
    get: (id) => values.get(id),
    has: (id) => values.has(id),
    set(id, value) {
      if (values.get(id) === value) return
      values.set(id, value)
      ids = undefined
    },
    delete(id) {
      if (values.delete(id)) ids = undefined
    },
    ids: () => (ids ??= [...values.keys()]),
    entries: () => values,
  }
}
