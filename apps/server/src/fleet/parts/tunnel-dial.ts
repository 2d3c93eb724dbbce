/** The edge's end of tunnels: connects to ports of sandboxes through their node. */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import type { DialSandbox } from '@atoll/edge'
import type { ListenAddress } from '../../listen-address.ts'
import type { IdentityHolder } from '../identity/identity.ts'
import { dialPeer } from '../peers/dial-peer.ts'
import { tunnelProtocol } from '../peers/listener.ts'
import { formatHead, opened } from '../tunnel-head.ts'

const connectLimitMs = 5_000
const answerLimitMs = 40_000
const pauseMs = 500

/** Returns undefined if nothing listens on the port, or if the node does not answer within `holdMs`. */
export function createTunnelDial(node: {
  readonly id: string
  readonly address: ListenAddress
  readonly identity: IdentityHolder
  /** Time that a request waits for a node agent that restarts. */
  readonly holdMs: number
}): DialSandbox {
  let session: Buffer | undefined
  const connect = async (signal: AbortSignal): Promise<TLSSocket> => {
    const { id, address, identity } = node
    const socket = await dialPeer({
      ...{ address, session, protocol: tunnelProtocol },
      identity: identity.current(),
      expected: { role: 'node', id },
      signal: AbortSignal.any([signal, AbortSignal.timeout(connectLimitMs)]),
    })
    socket.on('session', (ticket: Buffer) => (session = ticket))
    return socket
  }
  const connectOrHold = async (signal: AbortSignal): Promise<TLSSocket | undefined> => {
    const until = performance.now() + node.holdMs
    while (!signal.aborted) {
      try {
        return await connect(signal)
      } catch {
        session = undefined
        if (performance.now() > until) return undefined
        await sleep(pauseMs, undefined, { signal }).catch(() => {}) // aborted: checked above
      }
    }
    return undefined
  }
  return async (sandbox, port, { signal }): Promise<Socket | undefined> => {
    if (port < 1 || port > 65_535) return undefined
    const socket = await connectOrHold(signal)
    if (!socket) return undefined
    socket.write(formatHead({ sandboxId: sandbox.id, generation: sandbox.generation, port }))
    const limit = AbortSignal.any([signal, AbortSignal.timeout(answerLimitMs)])
    if (await readAnswer(socket, limit)) return socket
    socket.destroy()
    return undefined
  }
}

/** Leaves all bytes after the answer in the socket. */
function readAnswer(socket: TLSSocket, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (isOpen: boolean) => {
      socket.off('readable', read)
      socket.off('close', giveUp)
      socket.off('end', giveUp)
      signal.removeEventListener('abort', giveUp)
      // A stream leaves the readable mode in the next turn only.
      setImmediate(() => resolve(isOpen))
    }
    const giveUp = () => finish(false)
    const read = () => {
      const answer: unknown = socket.read(1)
      if (answer instanceof Buffer) finish(answer[0] === opened)
    }
    socket.on('readable', read)
    socket.once('close', giveUp)
    socket.once('end', giveUp)
    signal.addEventListener('abort', giveUp, { once: true })
    if (signal.aborted) giveUp()
  })
}
