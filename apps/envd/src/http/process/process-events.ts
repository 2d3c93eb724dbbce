/** Converts process events to stream messages. */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ProcessEventSchema } from '@atoll/contracts/gen/process/process_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ProcessEvent } from '../../app/live-process.ts'
import type { Attachment } from '../../app/processes.ts'
import { abortReason } from '../wire/streams.ts'

/** StartResponse or ConnectResponse, which both carry a process event. */
export interface StreamedEvent {
  readonly event: { readonly event: EventInit }
}

type EventInit = NonNullable<MessageInitShape<typeof ProcessEventSchema>['event']>

/**
 * Yields the start, then output and keepalives, then the end. An abort closes the subscription at once, even while
 * a message waits for a client that stopped reading, so that the process is not held up.
 */
export async function* streamEvents(
  { pid, subscription }: Attachment,
  options: {
    readonly signal: AbortSignal
    readonly keepaliveMs: number
    /**
     * True for Start: its deadline applies to the process too, so the stream fails when the deadline kills the
     * process.
     */
    readonly ownsDeadline: boolean
  },
): AsyncGenerator<StreamedEvent> {
  const { signal, keepaliveMs, ownsDeadline } = options
  const close = () => subscription.close()
  signal.addEventListener('abort', close, { once: true })
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
    signal.removeEventListener('abort', close)
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
  return new ConnectError(
    'The deadline passed, so the process was killed. Set a longer timeout.',
    Code.DeadlineExceeded,
  )
}
