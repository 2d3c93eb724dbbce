import type { CutReason, RunningSandbox } from '../domain/sandbox.ts'

export interface Entry extends RunningSandbox {
  /** The round of watching in which the node last named this sandbox. */
  round: number
  /** Cuts all open passes; later ones are cut as they attach. */
  end(reason: CutReason): void
}

export function createEntry(id: string, address: string, round: number): Entry {
  const cuts = new Set<(reason: CutReason) => void>()
  let ended: CutReason | undefined
  return {
    id,
    address,
    round,
    get open() {
      return cuts.size
    },
    attach(cut) {
      if (ended) {
        queueMicrotask(cut.bind(undefined, ended))
        return () => {}
      }
      cuts.add(cut)
      return () => cuts.delete(cut)
    },
    end(reason) {
      ended = reason
      for (const cut of cuts) cut(reason)
      cuts.clear()
    },
  }
}
