/** What clients themselves take for output: the same messages, ready made, from a server that does nothing else. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export interface CannedOutput extends AsyncDisposable {
  /** Answers every request with the output of a program. */
  readonly url: string
}

/** In a thread of its own, as far as that is another core. */
export async function serveCannedOutput(bytes: number): Promise<CannedOutput> {
  const worker = new Worker(new URL('canned-output-server.ts', import.meta.url), {
    workerData: bytes,
  })
  const [port]: number[] = await once(worker, 'message')
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => void (await worker.terminate()),
  }
}
