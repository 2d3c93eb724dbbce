import { createHash } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import type { Bundles } from '@atoll/objects/bundles'
import { z } from 'zod'
import { generationIn } from '../../domain/sandboxes/content-name.ts'
import { listNames } from '../record-file.ts'

/** Deletions of objects that are still to be done. They survive crashes and outages of the object store. */
export interface Deletions {
  /**
   * Deletes the bundles below a prefix that ends with a slash, some time after this returns. With `newest`, only the
   * contents of a sandbox up to this generation.
   */
  request(prefix: string, newest?: number): Promise<void>
  /** One pass. Keeps requests that fail, and reports them. */
  run(signal: AbortSignal): Promise<void>
}

const Request = z.object({
  prefix: z.string().regex(/^(snapshots|templates|sandboxes)\/[a-z0-9]+\/$/),
  newest: z.int().nonnegative().exactOptional(),
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
      const request = Request.parse(JSON.parse(await readFile(path, 'utf8')))
      const { newest } = request
      prefix = request.prefix
      for (const bundle of await bundles.listPaths(prefix, signal)) {
        const isMeant = newest === undefined || generationIn(bundle.slice(prefix.length)) <= newest
        if (isMeant) await bundles.remove(bundle, signal)
      }
      await rm(path, { force: true })
    } catch (error) {
      onError(error, prefix)
    }
  }

  return {
    async request(prefix, newest) {
      const request = Request.parse({ prefix, ...(newest !== undefined && { newest }) })
      // A request for some contents must not replace one for all.
      const identity = newest === undefined ? prefix : `${prefix} ${newest}`
      const name = createHash('sha256').update(identity).digest('hex').slice(0, 32)
      await writeFileAtomic(join(dir, `${name}.json`), JSON.stringify(request))
    },
    async run(signal) {
      const names = (await listNames(dir)).filter((name) => name.endsWith('.json'))
      for (const name of names) {
        if (!signal.aborted) await runOne(join(dir, name), signal)
      }
    },
  }
}
