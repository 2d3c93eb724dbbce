import { createHash } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import type { Bundles } from '@atoll/objects/bundles'
import { z } from 'zod'
import { listNames } from '../record-file.ts'

/** Deletions of objects that are still to be done. They survive crashes and outages of the object store. */
export interface Deletions {
  /** Deletes the bundles below a prefix that ends with a slash, some time after this returns. */
  request(prefix: string): Promise<void>
  /** One pass. Keeps requests that fail, and reports them. */
  run(signal: AbortSignal): Promise<void>
}

const Request = z.object({
  prefix: z.string().regex(/^(snapshots|templates|sandboxes)\/[a-z0-9]+\/$/),
})

export async function openDeletions(parts: {
  readonly dir: string
  readonly bundles: Pick<Bundles, 'listPaths' | 'remove'>
  readonly onError: (error: unknown, prefix: string) => void
}): Promise<Deletions> {
  const { dir, bundles, onError } = parts
  await mkdir(dir, { recursive: true, mode: 0o700 })

  async function runOne(path: string, signal: AbortSignal): Promise<void> {
    let prefix = path
    try {
      prefix = Request.parse(JSON.parse(await readFile(path, 'utf8'))).prefix
      for (const bundle of await bundles.listPaths(prefix, signal)) {
        await bundles.remove(bundle, signal)
      }
      await rm(path, { force: true })
    } catch (error) {
      onError(error, prefix)
    }
  }

  return {
    async request(prefix) {
      const name = createHash('sha256').update(prefix).digest('hex').slice(0, 32)
      await writeFileAtomic(join(dir, `${name}.json`), JSON.stringify(Request.parse({ prefix })))
    },
    async run(signal) {
      const names = (await listNames(dir)).filter((name) => name.endsWith('.json'))
      for (const name of names) {
        if (!signal.aborted) await runOne(join(dir, name), signal)
      }
    },
  }
}
