/** Joins without an operator at the keyboard: in pods, and on machines that are set up by a program. */
import { readFile } from 'node:fs/promises'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { ServerConfig } from '../../config.ts'
import { formatListenAddress } from '../../listen-address.ts'
import { readIdentity } from '../identity/identity-file.ts'
import type { StoredIdentity } from '../identity/identity-file.ts'
import type { MemberRole } from '../identity/join-token.ts'
import { joinPart } from '../join-part.ts'

/** Returns undefined if the settings name no token. Tries one api after the other until one is reached. */
export async function joinAtStart(
  { server, fleet }: ServerConfig,
  role: MemberRole,
  log: Logger,
): Promise<StoredIdentity | undefined> {
  const { ATOLL_FLEET_JOIN_TOKEN_FILE: tokenFile, ATOLL_FLEET_CA_FILE: caFile } = fleet
  const { ATOLL_FLEET_APIS: apis } = fleet
  const { ATOLL_DATA_DIR: dataDir } = server
  if (tokenFile === undefined) return undefined
  if (!apis) {
    throw refused('ATOLL_FLEET_JOIN_TOKEN_FILE needs the addresses of the apis: ATOLL_FLEET_APIS')
  }
  const token = (await readSetting('ATOLL_FLEET_JOIN_TOKEN_FILE', tokenFile)).trim()
  const authority = caFile && (await readSetting('ATOLL_FLEET_CA_FILE', caFile))
  let reason: unknown
  for (const address of apis) {
    const api = formatListenAddress(address)
    try {
      const id = await joinPart({ role, dataDir, api, token, ...(authority && { authority }) })
      log.info({ event: 'fleet.join', role, id, api })
      return await readIdentity(dataDir)
    } catch (error) {
      reason = error
      if (!(error instanceof Fault && error.reason === 'api_unreachable')) break
    }
  }
  throw reason
}

async function readSetting(name: string, path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw refused(`${name} ${path} cannot be read (${error.code})`, error)
  })
}

function refused(message: string, cause?: unknown): Fault {
  return new Fault('invalid', 'configuration_refused', message, { cause })
}
