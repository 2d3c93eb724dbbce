/** The client side of an api or an edge: listeners, HTTPS and telemetry. */
import type { Logger } from '@atoll/kit/log'
import type { ServerConfig } from '../../config.ts'
import { planConnections } from '../../connection-plan.ts'
import type { ConnectionPlan } from '../../connection-plan.ts'
import { readDescriptorLimit } from '../../descriptor-limit.ts'
import { startGateway } from '../../gateway.ts'
import type { GatewayParts } from '../../gateway.ts'
import type { ListenAddress } from '../../listen-address.ts'
import { startTelemetry } from '../../telemetry/telemetry.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { openTls } from '../../tls/open-tls.ts'
import type { TlsPlan } from '../../tls/tls-plan.ts'

export interface Entry {
  readonly address: ListenAddress
  readonly plan: ConnectionPlan
  readonly tls: TlsPlan | undefined
  readonly domain: string | undefined
  readonly telemetry: Telemetry
  open(parts: GatewayParts): void
  /** Accepts no new connections. Resolves when the open requests have ended, or after the limit. */
  drain(): Promise<void>
  close(): Promise<void>
}

export async function openEntry(config: ServerConfig, log: Logger): Promise<Entry> {
  await using started = new AsyncDisposableStack()
  const { server, edge } = config
  const tls = await openTls(server, log.child({ part: 'tls' }))
  if (tls) started.defer(() => tls.certificates.close())
  const plan = planConnections(await readDescriptorLimit(), {
    maxConnections: server.ATOLL_MAX_CONNECTIONS,
    maxPerClient: server.ATOLL_MAX_CONNECTIONS_PER_CLIENT,
    maxRequestsPerSandbox: edge.ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX,
    isTls: tls !== undefined,
  })
  const gateway = await startGateway(
    {
      api: server.ATOLL_LISTEN,
      tls: tls && { address: tls.plan.listen, certificates: tls.certificates },
      redirect: tls?.redirect,
    },
    plan,
    server.ATOLL_TRUSTED_PROXIES?.has,
  )
  started.defer(() => gateway.close())
  const renewal = tls?.startRenewal()
  if (renewal) started.defer(() => renewal.close())
  const telemetry = await startTelemetry(config, log.child({ part: 'telemetry' }))
  started.defer(() => telemetry.close())
  const owned = started.move()
  return {
    address: gateway.apiAddress,
    ...{ plan, telemetry, tls: tls?.plan, domain: tls?.plan.domain ?? server.ATOLL_DOMAIN },
    open: (parts) => gateway.open(parts),
    drain: () => gateway.drain(config.fleet.ATOLL_FLEET_DRAIN_SECONDS * 1000),
    close: () => owned.disposeAsync(),
  }
}
