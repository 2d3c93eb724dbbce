import { z } from 'zod'
import { recordSeconds } from './nft-rules.ts'

/** Connections that the firewall counted, merged by address, port and verdict. */
export interface ConnectionRecord {
  readonly address: string
  readonly port: number
  readonly protocol: 'tcp' | 'udp'
  readonly verdict: 'allowed' | 'denied'
  /** First packets of connections, also repeated ones. */
  readonly count: number
  readonly lastMs: number
}

const Listing = z.object({
  nftables: z.array(
    z.object({
      set: z
        .object({
          elem: z
            .array(
              z.object({
                elem: z.object({
                  val: z.object({
                    concat: z.tuple([z.string(), z.string(), z.enum(['tcp', 'udp']), z.int()]),
                  }),
                  expires: z.number(),
                  counter: z.object({ packets: z.number() }),
                }),
              }),
            )
            .optional(),
        })
        .optional(),
    }),
  ),
})

/** Readers share one listing for this long: it has the connections of all sandboxes. */
const keptMs = 1000

/** Returns a function that reads the records of all slots, by the name of their link. */
export function createConnectionRecords(
  listSet: (set: string) => Promise<string>,
  nowMs: () => number,
): () => Promise<ReadonlyMap<string, readonly ConnectionRecord[]>> {
  let latest: { readonly atMs: number; readonly records: ReturnType<typeof read> } | undefined

  async function read(): Promise<ReadonlyMap<string, readonly ConnectionRecord[]>> {
    const byLink = new Map<string, ConnectionRecord[]>()
    for (const verdict of ['allowed', 'denied'] as const) {
      const listing = parseRecords(await listSet(`${verdict}_connections`), verdict, nowMs())
      for (const { link, ...record } of listing) {
        const records = byLink.get(link) ?? []
        records.push(record)
        byLink.set(link, records)
      }
    }
    return byLink
  }

  return async () => {
    if (latest && nowMs() - latest.atMs < keptMs) return latest.records
    const records = read()
    latest = { atMs: nowMs(), records }
    records.catch(() => (latest = undefined))
    return records
  }
}

function parseRecords(
  json: string,
  verdict: ConnectionRecord['verdict'],
  nowMs: number,
): (ConnectionRecord & { readonly link: string })[] {
  const { nftables } = Listing.parse(JSON.parse(json))
  const elements = nftables.flatMap(({ set }) => set?.elem ?? [])
  return elements.map(({ elem: { val, expires, counter } }) => {
    const [link, address, protocol, port] = val.concat
    const lastMs = nowMs - (recordSeconds - expires) * 1000
    return { link, address, protocol, port, verdict, count: counter.packets, lastMs }
  })
}
