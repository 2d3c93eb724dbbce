import { Fault } from '@atoll/kit/fault'

/** Waits until the kernel has taken the bytes, so that the caller may reuse the buffer. */
export function writeFully(stream: NodeJS.WritableStream, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) =>
    stream.write(bytes, (error) => (error ? reject(error) : resolve())),
  )
}

/**
 * Forwards `stdin`, one request at a time to keep the order. Returns without an error if the process has closed its
 * input or has exited.
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

/** envd reports a closed pipe as `internal`. */
const refusals: ReadonlySet<string> = new Set(['not_found', 'internal'])
