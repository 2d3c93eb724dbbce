/** The node's end of tunnels: connects an edge with a port of a sandbox. Bytes of sandbox and client are not looked at. */
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import { NodeService, SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { dial } from '@atoll/edge/dial'
import type { Logger } from '@atoll/kit/log'
import { maxHeadBytes, opened, parseHead, refused } from '../tunnel-head.ts'
import type { TunnelHead } from '../tunnel-head.ts'

const headLimitMs = 10_000

export function createTunnels(node: Transport, log: Logger): (socket: TLSSocket) => void {
  const client = createClient(NodeService, node)

  const addressOf = async (head: TunnelHead): Promise<string | undefined> => {
    try {
      const { sandbox } = await client.getSandbox({ sandboxId: head.sandboxId })
      const isMeant = sandbox?.generation === head.generation
      return isMeant && sandbox.state !== SandboxState.PAUSED ? sandbox.address : undefined
    } catch (error) {
      if (ConnectError.from(error).code === Code.NotFound) return undefined
      throw error
    }
  }
  const open = async (socket: TLSSocket): Promise<void> => {
    const head = await readHead(socket)
    if (!head) return void socket.destroy()
    const address = await addressOf(head)
    const closed = new AbortController()
    const stop = () => closed.abort()
    socket.once('close', stop)
    const upstream =
      address === undefined || address === ''
        ? undefined
        : await dial(address, head.port, { signal: closed.signal })
    socket.off('close', stop)
    if (!upstream || socket.destroyed) {
      upstream?.destroy()
      socket.end(Buffer.from([refused]))
      return
    }
    socket.write(Buffer.from([opened]))
    join(socket, upstream)
  }
  return (socket) => {
    open(socket).catch((error: unknown) => {
      log.warn({ err: error, event: 'fleet.tunnel' }, 'a tunnel to a sandbox failed')
      socket.destroy()
    })
  }
}

function join(client: TLSSocket, upstream: Socket): void {
  client.setNoDelay(true)
  client.on('close', () => upstream.destroy())
  upstream.on('close', (hadError) => {
    // After an error, a clean end would make a cut stream look complete.
    if (hadError || !upstream.readableEnded) client.destroy()
  })
  client.pipe(upstream)
  upstream.pipe(client)
}

/** Returns undefined when the line is wrong or late. Leaves all bytes after the line in the socket. */
function readHead(socket: TLSSocket): Promise<TunnelHead | undefined> {
  return new Promise((resolve) => {
    let text = ''
    const finish = (head: TunnelHead | undefined) => {
      clearTimeout(timer)
      socket.off('readable', read)
      socket.off('close', giveUp)
      setImmediate(() => resolve(head))
    }
    const giveUp = () => finish(undefined)
    const read = () => {
      for (let byte = readByte(socket); byte !== undefined; byte = readByte(socket)) {
        if (byte === 0x0a) return finish(parseHead(text))
        text += String.fromCodePoint(byte)
        if (text.length > maxHeadBytes) return finish(undefined)
      }
    }
    const timer = setTimeout(giveUp, headLimitMs)
    socket.on('readable', read)
    socket.once('close', giveUp)
  })
}

function readByte(socket: TLSSocket): number | undefined {
  const piece: unknown = socket.read(1)
  return piece instanceof Buffer ? piece[0] : undefined
}
