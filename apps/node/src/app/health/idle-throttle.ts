import { countIdleChecks, idleLevelAfter } from '../../domain/sandboxes/idle-level.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'

export interface IdleThrottlePorts {
  readonly running: () => readonly RunningSandbox[]
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
  /** Undefined until the second check, which always sets the idle level: an earlier agent may have set another one. */
  readonly idleChecks: number | undefined
}

/** Throttles idle sandboxes. There may be hundreds of them, and together they should cost almost nothing. */
export function createIdleThrottle(ports: IdleThrottlePorts): IdleThrottle {
  let seen = new Map<string, Seen>()
  return {
    check() {
      const next = new Map<string, Seen>()
      for (const sandbox of ports.running()) {
        const found = checkSandbox(sandbox, seen.get(sandbox.record.cellId))
        if (found) next.set(sandbox.record.cellId, found)
      }
      seen = next
    },
    isAsleep: (cellId) => idleLevelAfter(seen.get(cellId)?.idleChecks ?? 0) === 'asleep',
  }

  function checkSandbox({ record }: RunningSandbox, last?: Seen): Seen | undefined {
    const { cellId, runtime, process } = record
    const cpuUsedNs = ports.cpuUsedNs(cellId)
    if (cpuUsedNs === undefined || !process) return undefined
    const now = { cpuUsedNs, atNs: ports.nowNs() }
    if (!last) return { ...now, idleChecks: undefined }
    const idleChecks = countIdleChecks(last.idleChecks ?? 0, shareOf(last, now))
    const level = idleLevelAfter(idleChecks)
    if (last.idleChecks === undefined || level !== idleLevelAfter(last.idleChecks)) {
      ports.runtimes[runtime].setIdleLevel(process, level)
    }
    return { ...now, idleChecks }
  }
}

type Reading = Pick<Seen, 'cpuUsedNs' | 'atNs'>

function shareOf(last: Reading, now: Reading): number {
  return Number(now.cpuUsedNs - last.cpuUsedNs) / Number(now.atNs - last.atNs)
}
