/** The common base of edges and nodes: an identity that renews itself, and calls to whichever api answers. */
import { mkdir } from 'node:fs/promises'
import type { Role } from '@atoll/contracts/fleet'
import { createKeys, toPem } from '@atoll/kit/certificates/x509'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { ServerConfig } from '../../config.ts'
import { parseListenAddress } from '../../listen-address.ts'
import type { ListenAddress } from '../../listen-address.ts'
import { createControlClient } from '../control/client.ts'
import type { ControlClient } from '../control/client.ts'
import { readIdentity, saveIdentity } from '../identity/identity-file.ts'
import type { StoredIdentity } from '../identity/identity-file.ts'
import { holdIdentity, renewalTime } from '../identity/identity.ts'
import type { ChangingIdentity, IdentityHolder } from '../identity/identity.ts'
import { joinAtStart } from './join-at-start.ts'
import { startPolling } from './polling.ts'

export interface FleetMember {
  readonly identity: IdentityHolder
  readonly control: ControlClient
  close(): Promise<void>
}

const renewCheckMs = 60_000
const callLimitMs = 10_000

export async function openMember(
  config: ServerConfig,
  role: Extract<Role, 'edge' | 'node'>,
  log: Logger,
): Promise<FleetMember> {
  const { server, fleet } = config
  const { ATOLL_DATA_DIR: dataDir } = server
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const stored = (await readIdentity(dataDir)) ?? (await joinAtStart(config, role, log))
  if (stored?.role !== role) throw notJoined(role, dataDir)
  const identity = holdIdentity(stored)
  const control = createControlClient(fleet.ATOLL_FLEET_APIS ?? [addressOf(stored)], identity)
  const renewal = startPolling('renew the certificate', renewCheckMs, log, () =>
    renewIfDue({ dataDir, stored, identity, control, log }),
  )
  return {
    ...{ identity, control },
    async close() {
      control.close()
      await renewal.close()
    },
  }
}

async function renewIfDue(parts: {
  readonly dataDir: string
  readonly stored: StoredIdentity
  readonly identity: ChangingIdentity
  readonly control: ControlClient
  readonly log: Logger
}): Promise<void> {
  const { dataDir, stored, identity, control, log } = parts
  if (new Date() < renewalTime(identity.current())) return
  const { publicKey, privateKey } = createKeys()
  const key = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }))
  const { certificate } = await control.call((api) =>
    api.renew({ publicKey: key }, { timeoutMs: callLimitMs }),
  )
  const renewed = { ...stored, certificate, key: toPem(privateKey) }
  await saveIdentity(dataDir, renewed)
  identity.replace(renewed)
  log.info({ event: 'fleet.renew', id: stored.id })
}

function addressOf({ api }: StoredIdentity): ListenAddress {
  const address = parseListenAddress(api)
  if (address) return address
  throw new Fault('invalid', 'fleet_identity', `The api ${api} that this part joined is invalid`)
}

function notJoined(role: string, dataDir: string): Fault {
  const message = `This ${role} has not joined a fleet with ${dataDir}: run atoll ${role} token on an api's machine, then atoll ${role} join <api> --token <token> here`
  return new Fault('invalid', 'not_joined', message)
}
