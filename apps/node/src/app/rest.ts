import { countCalmLooks, restAfter } from '../domain/rest.ts'
import type { Runtime, RunningSandbox } from '../domain/sandbox.ts'

export interface RestPorts {
  readonly running: () => readonly RunningSandbox[]
  /** Of all cores, since the cell began. Undefined when it has gone. */
  cpuUsedNs(cellId: string): bigint | undefined
  readonly runtimes: Readonly<Record<Runtime['name'], Pick<Runtime, 'rest'>>>
  /** Monotonic. */
  nowNs(): bigint
}

export interface Rests {
  /** One pass over all that runs. */
  look(): void
  isAsleep(cellId: string): boolean
}

/** What was seen of a sandbox at the last look. */
interface Seen {
  readonly cpuUsedNs: bigint
  readonly atNs: bigint
  /** Undefined until the second look, at which it is told in any case: a predecessor of ours may have told it otherwise. */
  readonly calmLooks: number | undefined
}

/** Looks after sandboxes that do nothing, of which there may be hundreds: together they are to cost next to nothing. */
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
