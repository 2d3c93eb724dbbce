import { createSandboxClient } from '@atoll/client/sandbox'
import type { ProcessClient } from '@atoll/client/sandbox'
import { faultFromConnect } from '@atoll/client/connect-fault'
import { Signal } from '@atoll/contracts/gen/process/process_pb'
import type {
  ProcessEvent_DataEvent,
  ProcessEvent_EndEvent,
  ProcessSelector,
} from '@atoll/contracts/gen/process/process_pb'
import { Fault } from '@atoll/kit/fault'
import type { Access } from './access.ts'

/**
 * Starts a process in a sandbox and streams its input and output until the process exits.
 * Commands import this file lazily, because it loads Connect, which most commands do not need.
 */

export interface SandboxAddress {
  readonly sandboxId: string
  readonly accessToken?: string | undefined
  readonly user?: string | undefined
}

export interface Handlers {
  /** Called once, after the process has started. */
  onStart(process: RunningProcess): void
  /** Awaited before the next read: a slow consumer slows the process. The buffer is reused afterwards. */
  onOutput(output: Output): Promise<void>
}

export type Output = ProcessEvent_DataEvent['output']
export type StartRequest = Parameters<ProcessClient['start']>[0]

export interface RunningProcess {
  sendInput(kind: 'stdin' | 'pty', bytes: Uint8Array): Promise<void>
  closeInput(): Promise<void>
  resize(size: { readonly cols: number; readonly rows: number }): Promise<void>
  /** Sends SIGTERM. */
  terminate(): Promise<void>
  kill(): Promise<void>
}

/** Aborting `signal` detaches: the process keeps running, and the call rejects with the abort reason. */
export async function attach(
  access: Access,
  address: SandboxAddress,
  request: StartRequest,
  handlers: Handlers,
  limits: { readonly signal: AbortSignal; readonly timeoutSeconds?: number | undefined },
): Promise<ProcessEvent_EndEvent> {
  const client = createSandboxClient({ url: access.sandboxUrl, ...address, reusesMemory: true })
  let isStarted = false
  try {
    const events = client.start(request, {
      signal: limits.signal,
      ...(limits.timeoutSeconds && { timeoutMs: limits.timeoutSeconds * 1000 }),
    })
    for await (const { event } of events) {
      switch (event?.event.case) {
        case 'start':
          isStarted = true
          handlers.onStart(
            runningProcess(client, event.event.value.pid, access.sandboxUrl, limits.signal),
          )
          break
        case 'data':
          await handlers.onOutput(event.event.value.output)
          break
        case 'end':
          return event.event.value
        case 'keepalive':
        case undefined:
          break
      }
    }
  } catch (thrown) {
    limits.signal.throwIfAborted()
    const fault = faultFromConnect(thrown, access.sandboxUrl)
    const isDeadline = limits.timeoutSeconds !== undefined && fault.kind === 'timeout'
    throw isStarted && !isDeadline ? connectionLost(address.sandboxId, thrown) : fault
  }
  throw connectionLost(address.sandboxId)
}

/** A stream that ends before the process means that the sandbox was killed or the connection broke. */
function connectionLost(sandboxId: string, cause?: unknown): Fault {
  const message = `The connection to sandbox ${sandboxId} was lost`
  return new Fault('unavailable', 'sandbox_lost', message, { cause })
}

/** Resize requests are sent one at a time, so a lost reply must not block the next one forever. */
const resizeLimitMs = 10_000

/** Aborting `signal` cancels pending input. Signals can still be sent afterwards. */
function runningProcess(
  client: ProcessClient,
  pid: number,
  url: string,
  signal: AbortSignal,
): RunningProcess {
  const process: { selector: ProcessSelector['selector'] } = {
    selector: { case: 'pid', value: pid },
  }
  const orFault = async (call: Promise<unknown>) => {
    await call.catch((thrown: unknown) => {
      throw faultFromConnect(thrown, url)
    })
  }
  return {
    sendInput: (kind, value) =>
      orFault(client.sendInput({ process, input: { input: { case: kind, value } } }, { signal })),
    closeInput: () => orFault(client.closeStdin({ process }, { signal })),
    resize: (size) =>
      orFault(client.update({ process, pty: { size } }, { signal, timeoutMs: resizeLimitMs })),
    terminate: () => orFault(client.sendSignal({ process, signal: Signal.SIGTERM })),
    kill: () => orFault(client.sendSignal({ process, signal: Signal.SIGKILL })),
  }
}
