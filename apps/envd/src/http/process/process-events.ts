/** Turns what happens to a process into the messages of a stream. */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ProcessEventSchema } from '@atoll/contracts/gen/process/process_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ProcessEvent } from '../../app/live-process.ts'
import type { Attachment } from '../../app/processes.ts'

/** Either message that carries a process event. */
export interface StreamedEvent {
  readonly event: { readonly event: EventInit }
}

type EventInit = NonNullable<MessageInitShape<typeof ProcessEventSchema>['event']>

/**
 * First the start, then output and signs of life, then the end. When the signal is aborted the subscription is closed at
 * once, also while a message waits for a client that reads no more: who left must not hold the process up.
 */
export async function* streamEvents(
  { pid, subscription }: Attachment,
  options: {
    readonly signal: AbortSignal
    readonly keepaliveMs: number
    /** For the stream of Start: its deadline is the process's, so a process that it killed ends the stream with it. */
    readonly ownsDeadline: boolean
  },
): AsyncGenerator<StreamedEvent> {
  const { signal, keepaliveMs, ownsDeadline } = options
  const leave = () => subscription.close()
  signal.addEventListener('abort', leave, { once: true })
  try {
    if (signal.aborted) throw reasonOf(signal)
    yield message({ case: 'start', value: { pid } })
    for (;;) {
      const next = await subscription.next(keepaliveMs)
      if (next === undefined || signal.aborted) throw reasonOf(signal)
      if (next === 'idle') {
        yield message({ case: 'keepalive', value: {} })
        continue
      }
      if (next.kind === 'end' && next.expired && ownsDeadline) throw deadlineExceeded()
      yield toMessage(next)
      if (next.kind === 'end') return
    }
  } finally {
    signal.removeEventListener('abort', leave)
    subscription.close()
  }
}

function message(event: EventInit): StreamedEvent {
  return { event: { event } }
}

function toMessage(event: ProcessEvent): StreamedEvent {
  if (event.kind === 'end') return message({ case: 'end', value: event.end })
  return message({ case: 'data', value: { output: { case: event.output, value: event.bytes } } })
}

/** Why a stream ends early: its deadline, the end of the daemon, or its caller's leaving. */
export function reasonOf(signal: AbortSignal): ConnectError {
  return signal.reason instanceof ConnectError
    ? signal.reason
    : new ConnectError('The client left', Code.Canceled)
}

function deadlineExceeded(): ConnectError {
  return new ConnectError('The deadline passed, the process was killed', Code.DeadlineExceeded)
}

/** Seconds in the header Keepalive-Ping-Interval; whatever is not a positive whole number means the default. */
export function keepaliveInterval(header: string | null): number {
  const seconds = /^\d{1,6}$/.test(header ?? '') ? Number(header) : 0
  return (seconds > 0 ? seconds : 90) * 1000
}
