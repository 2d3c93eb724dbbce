import { createHash } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import { tarChunks, tarSize } from '../tar/write.ts'
import type { TarEntry } from '../tar/write.ts'

/** Archive of a COPY step. The hash of its bytes names it on the server, so the same files are uploaded once. */
export interface Archive {
  readonly hash: string
  readonly sizeBytes: number
  /** Fails if the files have changed since they were hashed. */
  chunks(): AsyncGenerator<Uint8Array>
}

export async function createArchive(entries: readonly TarEntry[]): Promise<Archive> {
  const sizeBytes = tarSize(entries)
  const first = createHash('sha256')
  for await (const chunk of tarChunks(entries)) first.update(chunk)
  const hash = first.digest('hex')
  return {
    hash,
    sizeBytes,
    async *chunks() {
      const again = createHash('sha256')
      let sent = 0
      for await (const chunk of tarChunks(entries)) {
        again.update(chunk)
        sent += chunk.length
        // The last chunk is held back, so that a changed archive never reaches the server whole.
        if (sent === sizeBytes && again.copy().digest('hex') !== hash) throw changed()
        yield chunk
      }
    },
  }
}

function changed(): Fault {
  const message =
    'Files changed while they were uploaded. Run the command again when nothing writes to them.'
  return new Fault('conflict', 'file_changed', message)
}
