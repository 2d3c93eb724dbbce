import { countIdleChecks, idleLevelAfter } from '../../domain/sandboxes/idle-level.ts'
import type { IdleLevel } from '../../domain/sandboxes/idle-level.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'

export interface IdleThrottlePorts {
  readonly running: () => readonly RunningSandbox[]
  /** Whether requests wait for new cells. */
  isCrowded(): boolean
  /** CPU time on all cores since the cell started. Undefined when the cell is gone. */
  cpuUsedNs(cellId: string): bigint | undefined
  readonly runtimes: Readonly<Record<Runtime['name'], Pick<Runtime, 'setIdleLevel'>>>
  /** Monotonic clock. */
  nowNs(): bigint
}

export interface IdleThrottle {
  /** One pass over all running sandboxes. */
  check(): void
  isAsleep(cellId: string): boolean
}

/** State of a sandbox at the last check. */
interface Seen {
  readonly cpuUsedNs: bigint
  readonly atNs: bigint
  readonly idleChecks: number
  /** Undefined until the second check, which always sets the level: an earlier agent may have set another one. */
  readonly level: IdleLevel | undefined
}

/** Throttles idle sandboxes. There may be hundreds of them, and together they should cost almost nothing. */
export function createIdleThrottle(ports: IdleThrottlePorts): IdleThrottle {
  let seen = new Map<string, Seen>()
  return {
    check() {
      const next = new Map<string, Seen>()
      const isCrowded = ports.isCrowded()
      for (const sandbox of ports.running()) {
        const found = checkSandbox(sandbox, isCrowded, seen.get(sandbox.record.cellId))
        if (found) next.set(sandbox.record.cellId, found)
      }
      seen = next
    },
    isAsleep: (cellId) => seen.get(cellId)?.level === 'asleep',
  }

  function checkSandbox(
    { record }: RunningSandbox,
    isCrowded: boolean,
    last?: Seen,
  ): Seen | undefined {
    const { cellId, runtime, process } = record
    const cpuUsedNs = ports.cpuUsedNs(cellId)
    if (cpuUsedNs === undefined || !process) return undefined
    const now = { cpuUsedNs, atNs: ports.nowNs() }
    if (!last) return { ...now, idleChecks: 0, level: undefined }
    const idleChecks = countIdleChecks(last.idleChecks, shareOf(last, now))
    const level = idleLevelAfter(idleChecks, isCrowded)
    if (level !== last.level) ports.runtimes[runtime].setIdleLevel(process, level)
    return { ...now, idleChecks, level }
  }
}

type Reading = Pick<Seen, 'cpuUsedNs' | 'atNs'>

function shareOf(last: Reading, now: Reading): number {
  return Number(now.cpuUsedNs - last.cpuUsedNs) / Number(now.atNs - last.atNs)
}
