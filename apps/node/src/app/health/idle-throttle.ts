import { countCalmLooks, restAfter } from '../../domain/sandboxes/idle-level.ts'
import type { Runtime, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'

export interface RestPorts {
  readonly running: () => readonly RunningSandbox[]
  /** CPU time on all cores since the cell started. Undefined when the cell is gone. */
  cpuUsedNs(cellId: string): bigint | undefined
  readonly runtimes: Readonly<Record<Runtime['name'], Pick<Runtime, 'rest'>>>
  /** Monotonic clock. */
  nowNs(): bigint
}

export interface Rests {
  /** One pass over all running sandboxes. */
  look(): void
  isAsleep(cellId: string): boolean
}

/** State of a sandbox at the last check. */
interface Seen {
  readonly cpuUsedNs: bigint
  readonly atNs: bigint
  /** Undefined until the second check, which always sets the idle level: an earlier agent may have set another one. */
  readonly calmLooks: number | undefined
}

/** Throttles idle sandboxes. There may be hundreds of them, and together they should cost almost nothing. */
export function createRest(ports: RestPorts): Rests {
  let seen = new Map<string, Seen>()
  return {
    look() {
      const next = new Map<string, Seen>()
      for (const sandbox of ports.running()) {
        const found = lookAt(sandbox, seen.get(sandbox.record.cellId))
        if (found) next.set(sandbox.record.cellId, found)
      }
      seen = next
    },
    isAsleep: (cellId) => restAfter(seen.get(cellId)?.calmLooks ?? 0) === 'asleep',
  }

  function lookAt({ record }: RunningSandbox, last?: Seen): Seen | undefined {
    const { cellId, runtime, process } = record
    const cpuUsedNs = ports.cpuUsedNs(cellId)
    if (cpuUsedNs === undefined || !process) return undefined
    const now = { cpuUsedNs, atNs: ports.nowNs() }
    if (!last) return { ...now, calmLooks: undefined }
    const calmLooks = countCalmLooks(last.calmLooks ?? 0, shareOf(last, now))
    const rest = restAfter(calmLooks)
    if (last.calmLooks === undefined || rest !== restAfter(last.calmLooks)) {
      ports.runtimes[runtime].rest(process, rest)
    }
    return { ...now, calmLooks }
  }
}

type Reading = Pick<Seen, 'cpuUsedNs' | 'atNs'>

function shareOf(last: Reading, now: Reading): number {
  return Number(now.cpuUsedNs - last.cpuUsedNs) / Number(now.atNs - last.atNs)
}
