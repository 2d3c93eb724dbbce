import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'

const silenceMs = 2_000

/** Creates a TCP and UDP peer. Both sides name a connection by the port of the client. */
export function createTalker() {
  const lines = new Map<string, Line>()
  const datagrams: string[] = []
  const udp = createSocket('udp4', (message) => datagrams.push(message.toString()))

  function hold(socket: Socket): Line {
    const line: Line = { socket, heard: '', ended: undefined }
    socket.setEncoding('utf8').on('data', (text: string) => (line.heard += text))
    socket.on('error', (error: NodeJS.ErrnoException) => (line.ended ??= error.code ?? 'error'))
    socket.on('close', () => (line.ended ??= 'closed'))
    return line
  }

  function find(name: string): Line {
    const line = lines.get(name)
    if (!line) throw new Error(`no line ${name}`)
    return line
  }

  return {
    datagrams,

    async listen(port: number): Promise<void> {
      const server = createServer((socket) => lines.set(String(socket.remotePort), hold(socket)))
      server.listen(port, '0.0.0.0')
      udp.bind(port, '0.0.0.0')
      await Promise.all([once(server, 'listening'), once(udp, 'listening')])
    },

    async dial(address: string, port: number): Promise<{ name: string } | { error: string }> {
      const socket = connect({ host: address, port, noDelay: true, timeout: silenceMs })
      const line = hold(socket)
      socket.once('timeout', () => {
        line.ended = 'SILENCE'
        socket.destroy()
      })
      await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {})
      if (line.ended !== undefined) return { error: line.ended }
      socket.setTimeout(0)
      const name = String(socket.localPort)
      lines.set(name, line)
      return { name }
    },

    say: (name: string, text: string) => void find(name).socket.write(text),
    heard: (name: string) => find(name).heard,
    /** Returns why a connection ended, or null while it is open. */
    ended: (name: string) => find(name).ended ?? null,

    async send(address: string, port: number, text: string): Promise<void> {
      await new Promise<void>((resolve) => udp.send(text, port, address, () => resolve()))
    },
  }
}

interface Line {
  readonly socket: Socket
  heard: string
  ended: string | undefined
}
