import type {
  ProcessInput,
  ProcessSelector,
  StreamInputRequest,
} from '@atoll/contracts/gen/process/process_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Processes, Selector } from '../../app/processes.ts'

export function toSelector(message: ProcessSelector | undefined): Selector {
  const { selector } = message ?? {}
  if (selector?.case === 'pid') return { by: 'pid', pid: selector.value }
  if (selector?.case === 'tag') return { by: 'tag', tag: selector.value }
  throw new ConnectError('No process selected. Select it by pid or tag.', Code.Unimplemented)
}

export async function sendInput(
  processes: Processes,
  selector: Selector,
  message: ProcessInput | undefined,
): Promise<void> {
  processes.requireLive(selector)
  const { input } = message ?? {}
  if (input?.case === 'stdin') return processes.writeStdin(selector, input.value)
  if (input?.case === 'pty') return processes.writeTerminal(selector, input.value)
  throw new ConnectError('No input. Send it as stdin or pty.', Code.Unimplemented)
}

/** The first message selects the process; the others carry input, one at a time. */
export async function streamInput(
  processes: Processes,
  requests: AsyncIterable<StreamInputRequest>,
  signal: AbortSignal,
): Promise<void> {
  let selected: Selector | undefined
  for await (const { event } of requests) {
    signal.throwIfAborted()
    if (selected === undefined) {
      if (event.case !== 'start')
        throw new ConnectError('The first message must be start', Code.Unimplemented)
      selected = toSelector(event.value.process)
      processes.requireLive(selected)
    } else if (event.case === 'data') {
      await sendInput(processes, selected, event.value.input)
    } else if (event.case !== 'keepalive') {
      throw new ConnectError('Messages after start must be data or keepalive', Code.Unimplemented)
    }
  }
}

/** Input to a program that does not read may block, so the caller's deadline bounds the wait. */
export async function withinDeadline(done: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    await Promise.race([done, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
