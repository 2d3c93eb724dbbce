import { Fault } from '@atoll/kit/fault'

/** Writes and waits until the system has it: then the memory may be used for something else. */
export function writeFully(stream: NodeJS.WritableStream, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) =>
    stream.write(bytes, (error) => (error ? reject(error) : resolve())),
  )
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
