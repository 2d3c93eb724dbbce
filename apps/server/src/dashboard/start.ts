import { join } from 'node:path'
import type { Transport } from '@connectrpc/connect'
import type { Api } from '@atoll/api'
import { buildDashboard } from '@atoll/dashboard/build'
import { createEdge } from '@atoll/edge'
import { systemClock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { ClientAddresses } from '../client-addresses.ts'
import { readCredentials } from '../credentials.ts'
import { createDashboard } from './dashboard.ts'
import type { Dashboard } from './dashboard.ts'
import { openEnvdEndpoint } from './envd-endpoint.ts'
import { createRecordings } from './recordings/recordings.ts'
import type { Recordings } from './recordings/recordings.ts'
import { openSessionFile } from './session-file.ts'
import { openSessions, operatorSeconds } from './sessions.ts'
import { openShareFile } from './shares/share-file.ts'
import { openShares } from './shares/shares.ts'
import { createSignInLink } from './sign-in-link.ts'
import { createUpstream } from './upstream.ts'

export interface StartedDashboard extends Dashboard {
  readonly url: string
  /** Signs in once, with the first API key. */
  readonly signInUrl: string
}

/** Builds the pages if they changed, and puts the dashboard together. */
export async function startDashboard(parts: {
  readonly host: string
  /** Origin of the dashboard, as browsers see it. */
  readonly url: string
  /** The server's own listener, for requests of the backend. */
  readonly platformUrl: string
  /** Shown to users. */
  readonly addresses: ClientAddresses
  readonly dataDir: string
  readonly node: Transport
  readonly api: Pick<Api, 'describeKey'>
  readonly log: Logger
  readonly progress: (label: string, fraction: number) => void
}): Promise<StartedDashboard> {
  const { host, url, dataDir, log } = parts
  const bundle = await buildDashboard(() => parts.progress('building the dashboard', 0.5))
  const file = openSessionFile(join(dataDir, 'dashboard-sessions.json'), log)
  const sessions = await openSessions(file, systemClock)
  const operators = openSessionFile(join(dataDir, 'dashboard-operators.json'), log)
  const operatorSessions = await openSessions(operators, systemClock, operatorSeconds)
  const shares = await openShares(
    openShareFile(join(dataDir, 'dashboard-shares.json'), log),
    systemClock,
  )
  const endpoint = await openEnvdEndpoint(createEdge({ nodes: [parts.node], log }))
  const link = createSignInLink(systemClock)
  const recordings = createRecordings(join(dataDir, 'dashboard-recordings'), systemClock)
  const collecting = collectEveryHour(recordings, log)
  const dashboard = createDashboard({
    ...{ host, bundle, log, sessions, operatorSessions, shares, recordings },
    platform: createUpstream(parts.platformUrl),
    envd: createUpstream(endpoint.url),
    envdUrl: endpoint.url,
    describeKey: parts.api.describeKey,
    redeemLink: async (token) =>
      link.redeem(token) ? (await readCredentials(dataDir))?.apiKey : undefined,
    addresses: { ...parts.addresses },
  })
  return {
    ...dashboard,
    url,
    signInUrl: `${url}/sign-in#${link.token}`,
    async close() {
      clearInterval(collecting)
      await dashboard.close()
      await recordings.close()
      await endpoint.close()
    },
  }
}

const hourMs = 60 * 60 * 1_000

function collectEveryHour(recordings: Recordings, log: Logger): NodeJS.Timeout {
  const collect = () =>
    void recordings.collect().catch((error: unknown) => {
      log.warn({ err: error }, 'old recordings of terminals cannot be removed')
    })
  collect()
  return setInterval(collect, hourMs)
}
