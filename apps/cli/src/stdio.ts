import { once } from 'node:events'
import { Fault } from '@atoll/kit/fault'

/** Writes and waits until there is room again. */
export async function writeFully(stream: NodeJS.WritableStream, bytes: Uint8Array): Promise<void> {
  if (!stream.write(bytes)) await once(stream, 'drain')
}

/**
 * Sends what comes from `stdin`, one request at a time so that the order holds; what arrives meanwhile is joined.
 * Ends quietly when the process takes no more: it closed its input, or it is gone.
 */
export async function pumpInput(
  stdin: NodeJS.ReadableStream,
  send: (bytes: Uint8Array) => Promise<void>,
  close: () => Promise<void>,
): Promise<void> {
  try {
    for await (const chunk of stdin) {
      await send(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    }
    await close()
  } catch (thrown) {
    const isRefused = thrown instanceof Fault && refusals.has(thrown.kind)
    if (!isRefused) throw thrown
  }
}

/** `internal` is how the daemon reports a pipe whose other end is closed. */
const refusals: ReadonlySet<string> = new Set(['not_found', 'internal'])
