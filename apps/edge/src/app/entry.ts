import type { Ingress } from '../domain/ingress.ts'
import type { CutReason, RunningSandbox, SandboxPlace } from '../domain/sandbox.ts'

export interface Entry extends RunningSandbox {
  /** The round of watching in which the node last named this sandbox. */
  round: number
  ingress: Ingress
  readonly isPausing: boolean
  /** Tells all open passes. */
  setPausing(isPausing: boolean): void
  /** Cuts all open passes; later ones are cut as they attach. */
  end(reason: CutReason): void
}

/** `passes` counts the open ones of all entries. */
export function createEntry(place: SandboxPlace, round: number, passes: { open: number }): Entry {
  const cuts = new Set<(reason: CutReason) => void>()
  let ended: CutReason | undefined
  let { isPausing } = place
  return {
    ...place,
    round,
    get open() {
      return cuts.size
    },
    get isPausing() {
      return isPausing
    },
    setPausing(is) {
      if (is && !isPausing) for (const cut of cuts) cut('pausing')
      isPausing = is
    },
    attach(cut) {
      if (ended) {
        queueMicrotask(cut.bind(undefined, ended))
        return () => {}
      }
      cuts.add(cut)
      passes.open += 1
      if (isPausing) queueMicrotask(() => cuts.has(cut) && cut('pausing'))
      return () => {
        if (cuts.delete(cut)) passes.open -= 1
      }
    },
    end(reason) {
      ended = reason
      for (const cut of cuts) cut(reason)
      passes.open -= cuts.size
      cuts.clear()
    },
  }
}
