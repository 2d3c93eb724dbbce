/** Calls the internal service of whichever api answers. */
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { Client } from '@connectrpc/connect'
import { ControlService } from '@atoll/contracts/gen/atoll/control/v1/control_pb'
import type { ListenAddress } from '../../listen-address.ts'
import type { IdentityHolder } from '../identity/identity.ts'
import { connectPeer } from '../peers/transport.ts'

export type Control = Client<typeof ControlService>

export interface ControlClient {
  /** Runs a call with the api that answered last, and with the others if it is out of reach or does not answer in time. */
  call<T>(run: (api: Control) => Promise<T>): Promise<T>
  close(): void
}

export function createControlClient(
  addresses: readonly ListenAddress[],
  identity: IdentityHolder,
): ControlClient {
  const apis = addresses.map((address) => {
    const { transport, close } = connectPeer({ address, identity, expected: { role: 'api' } })
    return { client: createClient(ControlService, transport), close }
  })
  let preferred = Math.floor(Math.random() * apis.length)
  return {
    async call(run) {
      let reason: unknown = new ConnectError('there is no api', Code.Unavailable)
      for (let tried = 0; tried < apis.length; tried += 1) {
        const index = (preferred + tried) % apis.length
        const api = apis[index]
        if (!api) continue
        try {
          const answer = await run(api.client)
          preferred = index
          return answer
        } catch (error) {
          if (!isAbsent(error)) throw error
          // Later calls must not wait for this one first.
          if (preferred === index) preferred = (index + 1) % apis.length
          reason = error
        }
      }
      throw reason
    },
    close() {
      for (const { close } of apis) close()
    },
  }
}

/** An api behind a cut network gives no error, so the call ends by its time limit. */
export function isAbsent(error: unknown): boolean {
  const { code } = ConnectError.from(error)
  return code === Code.Unavailable || code === Code.DeadlineExceeded
}
