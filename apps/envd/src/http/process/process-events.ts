/** Turns what happens to a process into the messages of a stream. */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ProcessEventSchema } from '@atoll/contracts/gen/process/process_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ProcessEvent } from '../../app/live-process.ts'
import type { Attachment } from '../../app/processes.ts'
import { abortReason } from '../wire/streams.ts'

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
    if (signal.aborted) throw abortReason(signal)
    yield message({ case: 'start', value: { pid } })
    for (;;) {
      const next = await subscription.next(keepaliveMs)
      if (next === undefined || signal.aborted) throw abortReason(signal)
      if (next === 'idle') {
        yield message({ case: 'keepalive', value: {} })
        continue
      }
      if (next.kind === 'end' && next.timedOut && ownsDeadline) throw deadlineExceeded()
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

function deadlineExceeded(): ConnectError {
  return new ConnectError('The deadline passed, the process was killed', Code.DeadlineExceeded)
}
