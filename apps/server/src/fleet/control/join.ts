/** Joins a fleet: exchanges a token for a certificate. */
import { connect } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import { ConnectError, createClient } from '@connectrpc/connect'
import type { Role } from '@atoll/contracts/fleet'
import { ControlService } from '@atoll/contracts/gen/atoll/control/v1/control_pb'
import { createKeys, toPem } from '@atoll/kit/certificates/x509'
import { Fault } from '@atoll/kit/fault'
import { formatListenAddress } from '../../listen-address.ts'
import type { ListenAddress } from '../../listen-address.ts'
import type { StoredIdentity } from '../identity/identity-file.ts'
import { memberOf } from '../identity/identity.ts'
import { connectPeer } from '../peers/transport.ts'
import { fingerprintOf, isAccountToken, parseToken } from '../identity/join-token.ts'
import type { JoinToken } from '../identity/join-token.ts'

export interface JoinOptions {
  readonly api: ListenAddress
  readonly token: string
  readonly role: Extract<Role, 'edge' | 'node'>
  /** ID of the node. Edges get theirs. */
  readonly id?: string
  /** Certificate of the authority, PEM. Tokens of service accounts do not name it. */
  readonly authority?: string
}

const limitMs = 10_000

export async function joinFleet(options: JoinOptions): Promise<StoredIdentity> {
  const { api, role, id } = options
  const { secret, fingerprint } = readToken(options)
  const place = formatListenAddress(api)
  const authority = await fetchAuthority(api, fingerprint)
  const { publicKey, privateKey } = createKeys()
  const peer = connectPeer({
    address: api,
    identity: { current: () => ({ authority }) },
    expected: { role: 'api' },
  })
  try {
    const key = publicKey.export({ type: 'spki', format: 'der' })
    const reply = await createClient(ControlService, peer.transport).join(
      { token: secret, role, id: id ?? '', publicKey: new Uint8Array(key) },
      { timeoutMs: limitMs },
    )
    const { certificate } = reply
    return { role, id: reply.id, certificate, key: toPem(privateKey), authority, api: place }
  } catch (error) {
    const { rawMessage } = ConnectError.from(error)
    const message = `The api at ${place} does not let this ${role} join: ${rawMessage}`
    throw new Fault('forbidden', 'join_refused', message, { cause: error })
  } finally {
    peer.close()
  }
}

function readToken({ token, authority }: JoinOptions): JoinToken {
  if (!isAccountToken(token)) return parseToken(token)
  if (authority === undefined) {
    const message =
      'To join with a service account, set ATOLL_FLEET_CA_FILE to the certificate of the fleet'
    throw new Fault('invalid', 'configuration_refused', message)
  }
  return { secret: token, fingerprint: fingerprintOf(parseAuthority(authority)) }
}

function parseAuthority(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (error) {
    const message = 'ATOLL_FLEET_CA_FILE must have the certificate of the fleet, as PEM'
    throw new Fault('invalid', 'fleet_authority', message, { cause: error })
  }
}

/** Reads the authority that the api presents, and compares it with the token. Nothing is sent yet. */
function fetchAuthority(api: ListenAddress, fingerprint: string): Promise<string> {
  const place = formatListenAddress(api)
  return new Promise((resolve, reject) => {
    const socket = connect({ ...api, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
    const finish = (result: string | Fault) => {
      clearTimeout(timer)
      socket.destroy()
      if (typeof result === 'string') resolve(result)
      else reject(result)
    }
    const timer = setTimeout(() => finish(unreachable(place, 'no answer')), limitMs)
    socket.on('error', (error) => finish(unreachable(place, error.message)))
    socket.once('secureConnect', () => {
      const server = socket.getPeerX509Certificate()
      const authority = findAuthority(server, fingerprint)
      finish(authority ? authority.toString() : wrongFleet(place))
    })
  })
}

function findAuthority(server: X509Certificate | undefined, fingerprint: string) {
  const authority = server?.issuerCertificate
  if (!server || !authority || memberOf(server)?.role !== 'api') return undefined
  return fingerprintOf(authority) === fingerprint ? authority : undefined
}

function unreachable(place: string, reason: string): Fault {
  const message = `The api at ${place} does not answer (${reason}): give its internal address, ATOLL_FLEET_LISTEN of the api`
  return new Fault('unavailable', 'api_unreachable', message)
}

function wrongFleet(place: string): Fault {
  const message = `The server at ${place} does not belong to the fleet of this token. The token was not sent: check the address`
  return new Fault('forbidden', 'wrong_fleet', message)
}
