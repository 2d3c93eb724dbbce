/** Supervises one process from its start to its `end` event: output, deadline and exit. */
import { Fault } from '@atoll/kit/fault'
import { toProcessEnd } from '../domain/process/process-end.ts'
import type { ProcessEnd } from '../domain/process/process-end.ts'
import type { Output, OutputKind, Signal, SpawnedProcess } from '../domain/process/process.ts'
import { startPauseAwareTimer } from './pause-aware-timer.ts'
import { createFanout } from './fanout.ts'
import type { Subscription } from './fanout.ts'

/** The request as the caller sent it, before variables are merged in. */
export interface ProcessRequest {
  readonly cmd: string
  readonly args: readonly string[]
  readonly envs: Readonly<Record<string, string>>
  readonly cwd?: string | undefined
  readonly tag?: string | undefined
}

/** The bytes of an output event are valid until the next event is requested. */
export type ProcessEvent =
  | { readonly kind: 'output'; readonly output: OutputKind; readonly bytes: Uint8Array }
  | { readonly kind: 'end'; readonly end: ProcessEnd; readonly timedOut: boolean }

export interface LiveProcess {
  readonly pid: number
  readonly request: ProcessRequest
  /** Delivers events from now on; past output is not replayed. */
  subscribe(): Subscription<ProcessEvent>
  signal(signal: Signal): void
  readonly spawned: SpawnedProcess
}

export interface SuperviseOptions {
  readonly timeoutMs?: number | undefined
  /** Monotonic clock. */
  readonly nowMs: () => number
  /** Called before subscribers get the output. Must not keep the bytes. */
  readonly onOutput: (kind: OutputKind, bytes: Uint8Array) => void
  readonly onEnd: (end: ProcessEnd) => void
}

export function superviseProcess(
  spawned: SpawnedProcess,
  request: ProcessRequest,
  options: SuperviseOptions,
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

  /**
   * End-of-file may come long after the exit, because a grandchild can hold the pipes open. Only a signal or the
   * deadline cuts this wait short.
   */
  async function run(): Promise<void> {
    const outputsEnded = Promise.all(spawned.outputs.map(pump))
    const exit = await spawned.exit
    exited = true
    await Promise.race([outputsEnded, stopRequested.promise])
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
    // The pid of a reaped process may already belong to another process.
    if (!exited) kill(spawned, signal)
    stopRequested.resolve()
  }
}

function kill(spawned: SpawnedProcess, signal: Signal): void {
  try {
    spawned.kill(signal)
  } catch (cause) {
    const text = `Failed to send ${signal} to process ${spawned.pid}`
    throw new Fault('internal', 'signal_failed', text, { cause })
  }
}
