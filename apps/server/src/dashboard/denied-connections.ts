/** Names and addresses that running sandboxes of the team could not reach, for the start page. */
import { z } from 'zod'
import { faultFromReply } from '@atoll/client/http-fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { askPlatform } from './platform.ts'
import type { Upstream } from './upstream.ts'

export const deniedPath = '/bff/denied'

export interface DeniedConnection {
  readonly sandboxID: string
  readonly name?: string | undefined
  readonly address?: string | undefined
  readonly port: number
  readonly count: number
  readonly lastAt: string
}

/** Newest denials decide which sandboxes are read. */
const maxSandboxes = 40
const maxOfSandbox = 3
const maxDenied = 20
const recentMs = 60 * 60 * 1_000
const atOnce = 6

const Sandboxes = z.object({ sandboxes: z.array(z.object({ sandboxID: z.string() })) })
const Connections = z.object({
  connections: z.array(
    z.object({
      verdict: z.string(),
      name: z.string().optional(),
      address: z.string().optional(),
      port: z.number(),
      count: z.number(),
      lastAt: z.string(),
    }),
  ),
})
const Detail = z.object({
  network: z.object({ allowOut: z.array(z.string()).optional() }).optional(),
})

type Connection = z.infer<typeof Connections>['connections'][number]

interface Source {
  readonly platform: Upstream
  readonly apiKey: string
}

/** Reads the sandboxes with denials, a few at a time. A sandbox that ends meanwhile is left out. */
export async function readDenied(
  source: Source,
  signal: AbortSignal,
): Promise<{ readonly denied: readonly DeniedConnection[] }> {
  const list = await ask(source, '/sandboxes/denied', signal)
  if (list.status !== 200) throw faultFromReply(list.status, list.body)
  const inTurn = limitConcurrency(atOnce)
  const found = await Promise.all(
    Sandboxes.parse(list.body)
      .sandboxes.slice(0, maxSandboxes)
      .map(({ sandboxID }) => inTurn(() => readSandbox(source, sandboxID, signal))),
  )
  const denied = found.flat().toSorted((a, b) => Date.parse(b.lastAt) - Date.parse(a.lastAt))
  return { denied: denied.slice(0, maxDenied) }
}

async function readSandbox(
  source: Source,
  sandboxID: string,
  signal: AbortSignal,
): Promise<DeniedConnection[]> {
  const path = `/sandboxes/${encodeURIComponent(sandboxID)}`
  const answer = await ask(source, `${path}/connections`, signal)
  const { data } = Connections.safeParse(answer.body)
  if (answer.status !== 200 || !data) return []
  const denied = selectDenied(data.connections, Date.now())
  if (denied.length === 0) return []
  const detail = Detail.safeParse((await ask(source, path, signal)).body)
  const allowed = detail.data?.network?.allowOut ?? []
  return denied
    .filter(({ name, address }) => !isAllowed(allowed, name ?? address ?? ''))
    .map(({ name, address, port, count, lastAt }) => ({
      ...{ sandboxID, name, address, port, count, lastAt },
    }))
}

/** Returns recent refusals that nothing reached since, newest first, each destination once. */
export function selectDenied(connections: readonly Connection[], now: number): Connection[] {
  const lastOf = (one: Connection) => Date.parse(one.lastAt)
  const destinationOf = ({ name, address }: Connection) => name ?? address ?? ''
  const byDestination = Map.groupBy(connections, destinationOf)
  return [...byDestination.values()]
    .flatMap((all) => {
      const newest = all.toSorted((a, b) => lastOf(b) - lastOf(a))[0]
      if (newest?.verdict !== 'denied' || now - lastOf(newest) > recentMs) return []
      const count = all
        .filter(({ verdict }) => verdict === 'denied')
        .reduce((sum, one) => sum + one.count, 0)
      return [{ ...newest, count }]
    })
    .toSorted((a, b) => lastOf(b) - lastOf(a))
    .slice(0, maxOfSandbox)
}

/** Rules were changed after the refusal: it needs no attention any more. */
function isAllowed(allowed: readonly string[], destination: string): boolean {
  return allowed.some(
    (rule) =>
      rule === destination || (rule.startsWith('*.') && destination.endsWith(rule.slice(1))),
  )
}

function ask({ platform, apiKey }: Source, path: string, signal: AbortSignal) {
  return askPlatform({ platform, apiKey, path, signal })
}
