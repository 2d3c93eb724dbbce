import { mkdir } from 'node:fs/promises'
import { Fault } from '@atoll/kit/fault'
import { ensureNodeId } from '@atoll/node/state/node-identity'
import { parseListenAddress } from '../listen-address.ts'
import { joinFleet } from './control/join.ts'
import { readIdentity, saveIdentity } from './identity/identity-file.ts'

export interface JoinPartOptions {
  readonly role: 'edge' | 'node'
  readonly dataDir: string
  /** Internal address of an api, as the operator wrote it. */
  readonly api: string
  readonly token: string
  /** Certificate of the authority, PEM. */
  readonly authority?: string
}

/** `atoll node join` and `atoll edge join`. Returns the ID of the new member. */
export async function joinPart(options: JoinPartOptions): Promise<string> {
  const { role, dataDir, api, token, authority } = options
  const address = parseListenAddress(api.replace(/^https:\/\//, '').replace(/\/$/, ''))
  if (!address || address.port === 0) {
    const message = `${api} must be host:port: the internal address of an api (its ATOLL_FLEET_LISTEN)`
    throw new Fault('invalid', 'api_address', message)
  }
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const known = await readIdentity(dataDir)
  if (known) {
    const message = `${dataDir} belongs to ${known.role} ${known.id} already, which joined at ${known.api}`
    throw new Fault('conflict', 'already_joined', message)
  }
  const id = role === 'node' ? await ensureNodeId(dataDir) : undefined
  const identity = await joinFleet({
    ...{ api: address, token, role },
    ...(id !== undefined && { id }),
    ...(authority !== undefined && { authority }),
  })
  await saveIdentity(dataDir, identity)
  return identity.id
}
