import type { RunningSandbox } from '../domain/sandbox.ts'

export interface Entry extends RunningSandbox {
  /** The round of watching in which the node last named this sandbox. */
  round: number
  /** Cuts all open passes; later ones are cut as they attach. */
  end(): void
}

export function createEntry(id: string, address: string, round: number): Entry {
  const cuts = new Set<() => void>()
  let ended = false
  return {
    id,
    address,
    round,
    get open() {
      return cuts.size
    },
    attach(cut) {
      if (ended) {
        cut()
        return () => {}
      }
      cuts.add(cut)
      return () => cuts.delete(cut)
    },
    end() {
      ended = true
      for (const cut of cuts) cut()
      cuts.clear()
    },
  }
}
