/** One process from its start to its `end` event: output to whoever is attached, the deadline, the end. */
import { Fault } from '@atoll/kit/fault'
import { toProcessEnd } from '../domain/process/process-end.ts'
import type { ProcessEnd } from '../domain/process/process-end.ts'
import type { Output, OutputKind, Signal, SpawnedProcess } from '../domain/process/process.ts'
import { startPauseAwareTimer } from './pause-aware-timer.ts'
import { createFanout } from './fanout.ts'
import type { Subscription } from './fanout.ts'

/** As the caller asked for it: no merged environment, no helper program. */
export interface ProcessRequest {
  readonly cmd: string
  readonly args: readonly string[]
  readonly envs: Readonly<Record<string, string>>
  readonly cwd?: string | undefined
  readonly tag?: string | undefined
}

/** The bytes of an output are good until the next event is asked for. */
export type ProcessEvent =
  | { readonly kind: 'output'; readonly output: OutputKind; readonly bytes: Uint8Array }
  | { readonly kind: 'end'; readonly end: ProcessEnd; readonly timedOut: boolean }

export interface LiveProcess {
  readonly pid: number
  readonly request: ProcessRequest
  /** From now on: there is no history. */
  subscribe(): Subscription<ProcessEvent>
  signal(signal: Signal): void
  readonly spawned: SpawnedProcess
}

export function superviseProcess(
  spawned: SpawnedProcess,
  request: ProcessRequest,
  options: {
    readonly timeoutMs?: number | undefined
    /** Monotonic. */
    readonly nowMs: () => number
    /** Takes output before anybody attached does; the bytes are not its own. */
    readonly onOutput: (kind: OutputKind, bytes: Uint8Array) => void
    readonly onEnd: (end: ProcessEnd) => void
  },
): LiveProcess {
  const fanout = createFanout<ProcessEvent>()
  const stopRequested = Promise.withResolvers<void>()
  let exited = false
  let ended = false
  let timedOut = false
  const { timeoutMs, nowMs } = options
  const deadline =
    timeoutMs === undefined ? undefined : startPauseAwareTimer(timeoutMs, onTimeout, nowMs)
  void run()

  return {
    pid: spawned.pid,
    request,
    spawned,
    subscribe: () => fanout.subscribe(),
    signal: sendSignal,
  }

  /** End-of-file may come long after the exit: a grandchild can hold the pipes. Only a stop cuts that wait short. */
  async function run(): Promise<void> {
    const drained = Promise.all(spawned.outputs.map(pump))
    const exit = await spawned.exit
    exited = true
    await Promise.race([drained, stopRequested.promise])
    ended = true
    deadline?.stop()
    spawned.release()
    const end = toProcessEnd(exit)
    options.onEnd(end)
    fanout.finish({ kind: 'end', end, timedOut })
  }

  async function pump({ kind, chunks }: Output): Promise<void> {
    for await (const chunk of chunks) {
      if (ended) return
      options.onOutput(kind, chunk)
      await fanout.publish({ kind: 'output', output: kind, bytes: chunk })
    }
  }

  function onTimeout(): void {
    timedOut = true
    sendSignal('SIGKILL')
  }

  function sendSignal(signal: Signal): void {
    try {
      // A pid that was reaped may belong to somebody else by now.
      if (!exited) spawned.kill(signal)
    } catch (cause) {
      throw new Fault('internal', 'signal_failed', `Process ${spawned.pid} took no ${signal}`, {
        cause,
      })
    }
    stopRequested.resolve()
  }
}
