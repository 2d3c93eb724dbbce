/** Handles one connection of a sandbox from its first byte to its close. */
import type { Socket } from 'node:net'
import type { DecisionCounts } from '../app/decision-counts.ts'
import type { Sandboxes } from '../app/sandboxes.ts'
import type { Dialer, UpstreamConnection, Route } from '../domain/route.ts'
import { resetConnection } from './reset-connection.ts'
import { readServerName } from './server-name.ts'
import { pipeBothWays } from './pipe-both-ways.ts'
import type { Terminator } from './terminator.ts'

export interface ConnectionParts {
  readonly sandboxes: Sandboxes
  readonly counts: DecisionCounts
  readonly terminator: Terminator
  /** Undefined until the node agent has sent the first configuration. */
  dialer(): Dialer | undefined
}

export async function handleConnection(client: Socket, parts: ConnectionParts): Promise<void> {
  client.on('error', () => {})
  const { remoteAddress = '', localAddress = '', localPort = 0 } = client
  const sandbox = parts.sandboxes.find(remoteAddress)
  const dialer = parts.dialer()
  const ended = new AbortController()
  const open = new Set([client])
  const connection = {
    close() {
      ended.abort()
      open.forEach(resetConnection)
    },
  }
  const { counts } = parts
  const refuse = () => {
    counts.connectionsRefused += 1
    connection.close()
  }
  if (!sandbox || !dialer || !sandbox.admit(connection)) return refuse()
  client.once('close', () => ended.abort())
  const destination = { address: localAddress, port: localPort }
  const dial = async (route: Route): Promise<UpstreamConnection> => {
    const upstream = await dialer.dial(route, destination, ended.signal).catch((error: unknown) => {
      if (!ended.signal.aborted) counts.connectionsFailed += 1
      throw error
    })
    if (ended.signal.aborted) upstream.socket.destroy()
    open.add(upstream.socket)
    upstream.socket.once('close', () => open.delete(upstream.socket))
    return upstream
  }
  try {
    const serverName = await readServerName(client, sandbox, { destination, ended: ended.signal })
    const route = sandbox.route(connection, destination, serverName)
    const isAllowed = route !== undefined && (!route.transform || sandbox.admitTermination())
    const verdict = isAllowed ? 'allowed' : 'denied'
    const decision = { ...destination, name: serverName?.name, protocol: 'tcp', verdict } as const
    const addBytes = sandbox.record(decision)
    client.once('close', () => addBytes({ sent: client.bytesRead, received: client.bytesWritten }))
    if (!isAllowed) return refuse()
    counts.connectionsAllowed += 1
    if (route.transform) {
      const { transform } = route
      await parts.terminator.terminate(client, {
        transform,
        dial: () => dial(route),
        ended: ended.signal,
      })
    } else await pipeBothWays(client, await dial(route))
  } catch {
    connection.close() // the server could not be reached
  } finally {
    sandbox.remove(connection)
  }
}
