import { z } from 'zod'
import type { Nft } from './nft.ts'

/**
 * Removes the records of removed slots from the sets that all slots share. Otherwise a team that creates and kills
 * sandboxes could fill the sets, and the next sandbox of a slot would get the counts of the one before.
 *
 * Runs in the background, because listing the sets costs milliseconds and a kill must not wait. A failure is reported
 * and not retried: the records expire by themselves.
 */
export interface RecordRemoval {
  /** Removes the records of this link soon. */
  schedule(link: string): void
  /** Removes the records of this link now, if that is scheduled or in progress. */
  finish(link: string): Promise<void>
  /** Removes the records of this link now. Unlike the others, this throws. */
  remove(link: string): Promise<void>
  /** Drops what is scheduled and waits for what is in progress. */
  stop(): Promise<void>
}

export function createRecordRemoval(
  nft: Pick<Nft, 'listSet' | 'remove'>,
  table: string,
  onError: (error: unknown) => void,
): RecordRemoval {
  const scheduled = new Set<string>()
  let current: ReadonlySet<string> = new Set()
  let running = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  async function removeScheduled(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    current = new Set(scheduled)
    scheduled.clear()
    if (current.size > 0) await removeOf(current)
  }

  async function removeOf(links: ReadonlySet<string>): Promise<void> {
    for (const set of sets) {
      const keys = keysOf(await nft.listSet(table, set), links)
      for (let at = 0; at < keys.length; at += keysPerScript) {
        const batch = keys.slice(at, at + keysPerScript).join(', ')
        await nft.remove([`delete element ${table} ${set} { ${batch} }`])
      }
    }
  }

  function runNow(): Promise<void> {
    running = running
      .then(removeScheduled)
      .catch(onError)
      .finally(() => (current = new Set()))
    return running
  }

  return {
    schedule(link) {
      scheduled.add(link)
      timer ??= setTimeout(() => void runNow(), delayMs).unref()
    },
    async finish(link) {
      if (scheduled.has(link)) await runNow()
      else if (current.has(link)) await running
    },
    async remove(link) {
      // One after the other: nft removes nothing if one of the records is gone already.
      const own = running.then(() => removeOf(new Set([link])))
      running = own.catch(() => {})
      await own
    },
    async stop() {
      clearTimeout(timer)
      timer = undefined
      scheduled.clear()
      await running
    },
  }
}

const sets = ['allowed_connections', 'denied_connections', 'new_records']
/** Slots that are removed within this time share one listing. */
const delayMs = 2000
const keysPerScript = 500
/** Records that expire sooner are left alone: if one is gone when the script runs, nft removes none of them. */
const minSeconds = 60

const Listing = z.object({
  nftables: z.array(
    z.object({
      set: z
        .object({
          elem: z
            .array(
              z.object({
                elem: z.object({
                  val: z.union([
                    z.string().transform((link) => [link]),
                    z
                      .object({ concat: z.array(z.union([z.string(), z.int()])) })
                      .transform(({ concat }) => concat),
                  ]),
                  expires: z.number(),
                }),
              }),
            )
            .optional(),
        })
        .optional(),
    }),
  ),
})

function keysOf(json: string, links: ReadonlySet<string>): string[] {
  const { nftables } = Listing.parse(JSON.parse(json))
  const elements = nftables.flatMap(({ set }) => set?.elem ?? [])
  return elements.flatMap(({ elem: { val, expires } }) => {
    const [link, ...rest] = val.map(String)
    if (link === undefined || !links.has(link) || expires < minSeconds) return []
    return [[`"${link}"`, ...rest].join(' . ')]
  })
}
