/** The api's end of the internal service. Certificates and roles were checked by the listener. */
import { createPublicKey } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ConnectRouter, Interceptor, ServiceImpl } from '@connectrpc/connect'
import type { Api, FleetCalls } from '@atoll/api'
import { connectCodes } from '@atoll/contracts/connect-codes'
import { ControlService } from '@atoll/contracts/gen/atoll/control/v1/control_pb'
import { Fault } from '@atoll/kit/fault'
import { formatListenAddress, parseListenAddress } from '../../listen-address.ts'
import { issueCertificate } from '../identity/authority.ts'
import type { Authority, Member } from '../identity/authority.ts'
import { isAccountToken } from '../identity/join-token.ts'
import type { AdmitPod } from '../kubernetes/admit-pod.ts'
import { requireCaller } from '../peers/listener.ts'

export interface ControlParts {
  readonly fleet: FleetCalls
  readonly api: Pick<Api, 'wake' | 'findSigner'>
  readonly authority: Authority
  readonly admitPod: AdmitPod
  /** Read every few seconds: a query for each heartbeat would grow with the fleet. */
  readonly removedIds: () => readonly string[]
  readonly now: () => Date
}

const edgeMethods = new Set(['Renew', 'ListNodes', 'LocateSandbox', 'WakeSandbox', 'FindSigner'])
const nodeMethods = new Set(['Renew', 'Heartbeat'])

export function mayCallControl(caller: Member | undefined, method: string): boolean {
  if (!caller) return method === 'Join'
  if (caller.role === 'edge') return edgeMethods.has(method)
  return caller.role === 'node' && nodeMethods.has(method)
}

export function addControlService(router: ConnectRouter, parts: ControlParts): void {
  // No interceptors here: those of a service replace the role check of the listener.
  router.service(ControlService, controlService(parts))
}

function controlService(parts: ControlParts): ServiceImpl<typeof ControlService> {
  const { fleet, api } = parts
  const issue = (member: Member, publicKey: KeyObject) =>
    issueCertificate(parts.authority, member, { publicKey, now: parts.now() })
  return {
    async join({ token, role, id, publicKey }) {
      if (role !== 'edge' && role !== 'node')
        throw new ConnectError('the role must be edge or node', Code.InvalidArgument)
      if (role === 'node' && !/^[0-9a-f-]{36}$/.test(id))
        throw new ConnectError('the ID of the node must be a UUID', Code.InvalidArgument)
      const key = parseKey(publicKey)
      const wanted = role === 'node' ? id : undefined
      const secret = isAccountToken(token) ? await parts.admitPod(token, role) : token
      const joined = await fleet.join({ secret, role, id: wanted })
      const certificate = issue({ role, id: joined }, key)
      return { id: joined, certificate, authority: parts.authority.certificate }
    },
    async renew({ publicKey }, { values }) {
      const caller = requireCaller(values)
      await fleet.check(caller)
      return { certificate: issue(caller, parseKey(publicKey)) }
    },
    async heartbeat({ address, isStarting }, { values }) {
      const caller = requireCaller(values)
      const parsed = address.length <= 256 ? parseListenAddress(address) : undefined
      if (!parsed || parsed.port === 0)
        throw new ConnectError('the address must be host:port', Code.InvalidArgument)
      await fleet.noteHeartbeat({ id: caller.id, address: formatListenAddress(parsed), isStarting })
      return { removedIds: [...parts.removedIds()] }
    },
    async listNodes(_, { values }) {
      await fleet.check(requireCaller(values))
      return { nodes: [...(await fleet.listNodes())] }
    },
    async locateSandbox({ sandboxId }) {
      const nodeId = await fleet.locate(sandboxId)
      return nodeId === undefined ? {} : { nodeId }
    },
    async wakeSandbox({ sandboxId, port, accessToken, trafficToken }, { signal }) {
      const { kind, message } = await api.wake(
        { sandboxId, port, accessToken, trafficToken },
        signal,
      )
      return { result: kind, ...(message !== undefined && { message }) }
    },
    async findSigner({ path, username, operation, signature, expiration }) {
      const isWrite = operation === 'write'
      const file = { path, username, signature, expiration }
      const sandboxId = await api.findSigner({ ...file, operation: isWrite ? 'write' : 'read' })
      return sandboxId === undefined ? {} : { sandboxId }
    },
  }
}

/** P-256 only: other keys may be weak, or huge. */
function parseKey(der: Uint8Array): KeyObject {
  try {
    if (der.length <= 256) {
      const key = createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' })
      if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key
    }
  } catch {
    // Reported below.
  }
  throw new ConnectError('the public key must be P-256 in SPKI', Code.InvalidArgument)
}

/** Turns faults into errors that callers can read. */
export const toConnectErrors: Interceptor = (next) => async (request) => {
  try {
    return await next(request)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new ConnectError(error.message, connectCodes[error.kind], undefined, undefined, error)
  }
}
