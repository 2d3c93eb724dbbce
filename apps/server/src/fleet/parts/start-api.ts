/** Composition root of `atoll api`: the platform API of a fleet, and the internal service for its edges and nodes. */
import { X509Certificate } from 'node:crypto'
import { openStore, startApi } from '@atoll/api'
import type { Api, FirstCredentials } from '@atoll/api'
import type { Logger } from '@atoll/kit/log'
import type { ServerConfig } from '../../config.ts'
import { saveCredentials } from '../../credentials.ts'
import { formatListenAddress, parseListenAddress, toUrl } from '../../listen-address.ts'
import type { ListenAddress } from '../../listen-address.ts'
import { addControlService, mayCallControl, toConnectErrors } from '../control/service.ts'
import { openAuthority } from '../identity/authority-store.ts'
import type { Authority } from '../identity/authority.ts'
import { holdIdentity, issueIdentity, renewalTime } from '../identity/identity.ts'
import type { ChangingIdentity } from '../identity/identity.ts'
import { fingerprintOf, formatToken } from '../identity/join-token.ts'
import { openPodAdmission } from './pod-admission.ts'
import { startPeerListener } from '../peers/listener.ts'
import { connectPeer } from '../peers/transport.ts'
import { openEntry } from './entry.ts'
import { startRemovals } from './removals.ts'

export interface RunningApi {
  readonly url: string
  readonly fleetAddress: ListenAddress
  readonly firstCredentials?: FirstCredentials | undefined
  close(): Promise<void>
}

const defaultListen = { host: '0.0.0.0', port: 3300 }
const renewCheckMs = 60_000

export interface ApiPartOptions {
  /** Where the files of this pod's service account are. */
  readonly accountDir?: string
}

export async function startApiPart(
  config: ServerConfig,
  log: Logger,
  { accountDir = '/var/run/secrets/kubernetes.io/serviceaccount' }: ApiPartOptions = {},
): Promise<RunningApi> {
  await using started = new AsyncDisposableStack()
  const { ATOLL_DATA_DIR: dataDir } = config.server
  const entry = await openEntry(config, log)
  started.defer(() => entry.close())
  const store = await openStore(config.api, entry.telemetry.onQuery)
  started.defer(() => store.close())
  const caFile = config.fleet.ATOLL_FLEET_CA_FILE
  const authority = await openAuthority(store.sealedSettings, caFile, new Date())
  const identity = holdIdentity(issueIdentity(authority, { role: 'api', id: 'api' }, new Date()))
  started.adopt(startIssuing(authority, identity), (timer) => clearInterval(timer))
  const fingerprint = fingerprintOf(new X509Certificate(authority.certificate))
  const url = toUrl(entry.address)
  const api = await startApi(config.api, {
    ...{ store, nodes: [], nodeName: 'fleet', domain: entry.domain },
    fleet: {
      connect: ({ id, address }) =>
        connectPeer({ address: parse(address), identity, expected: { role: 'node', id } }),
      lostSeconds: config.fleet.ATOLL_FLEET_LOST_SECONDS,
      formatToken: (secret) => formatToken({ secret, fingerprint }),
    },
    log: log.child({ part: 'api' }),
    onRequest: entry.telemetry.onRequest,
    saveCredentials: (made) => saveCredentials(dataDir, { ...made, url }),
  })
  started.defer(() => api.close())
  const listener = await listen(config, { api, authority, identity, log, accountDir })
  started.defer(() => listener.close())
  entry.open({ api: entry.telemetry.traced(api.handler) })
  const fleetAddress = listener.address
  log.info({ event: 'api.start', url, fleet: formatListenAddress(fleetAddress) })
  const owned = started.move()
  return {
    url,
    fleetAddress,
    firstCredentials: api.firstCredentials,
    async close() {
      const limitMs = config.fleet.ATOLL_FLEET_DRAIN_SECONDS * 1000
      await Promise.all([entry.drain(), listener.drain(limitMs)])
      await owned.disposeAsync()
    },
  }
}

async function listen(
  config: ServerConfig,
  parts: {
    readonly api: Api
    readonly authority: Authority
    readonly identity: ChangingIdentity
    readonly log: Logger
    readonly accountDir: string
  },
) {
  const { api, authority, identity, log } = parts
  const { fleet } = api
  if (!fleet) throw new Error('the api was started without a fleet')
  const admitPod = openPodAdmission(config.fleet, { ...parts, allowOnce: fleet.allowOnce })
  const removals = await startRemovals(() => fleet.listRemoved(), log)
  const listener = await startPeerListener({
    listen: config.fleet.ATOLL_FLEET_LISTEN ?? defaultListen,
    ...{ identity, log, mayCall: mayCallControl, isRemoved: removals.has },
    interceptors: [toConnectErrors],
    routes: (router) =>
      addControlService(router, {
        ...{ fleet, api, authority, admitPod, removedIds: removals.ids, now: () => new Date() },
      }),
  })
  removals.onChange(() => listener.dropRemoved())
  return {
    address: listener.address,
    drain: (limitMs: number) => listener.drain(limitMs),
    async close() {
      await removals.close()
      await listener.close()
    },
  }
}

/** An api has the key of the authority, so it renews its own certificate. */
function startIssuing(authority: Authority, identity: ChangingIdentity): NodeJS.Timeout {
  const timer = setInterval(() => {
    const now = new Date()
    if (now < renewalTime(identity.current())) return
    identity.replace(issueIdentity(authority, identity.current(), now))
  }, renewCheckMs)
  timer.unref()
  return timer
}

function parse(text: string): ListenAddress {
  const address = parseListenAddress(text)
  if (address) return address
  throw new Error(`the store has the address ${text} of a node, which is not host:port`)
}
