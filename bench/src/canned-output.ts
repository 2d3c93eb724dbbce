/** Measures the clients alone: a server that answers with prepared output messages. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export interface CannedOutput extends AsyncDisposable {
  /** Every request gets the prepared output. */
  readonly url: string
}

/** Runs in a worker thread, to use another core. */
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
