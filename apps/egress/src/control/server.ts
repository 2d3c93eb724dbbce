/** Control socket for the node agent. */
import { chmod, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { Request, toLine } from './messages.ts'
import type { Answer } from './messages.ts'

/** Requests of one client are handled one at a time. */
export async function serveControl(
  path: string,
  handle: (request: Request) => Answer,
): Promise<void> {
  await rm(path, { force: true })
  const server = createServer((socket) => {
    void serve(socket, handle).catch(() => socket.destroy())
  })
  server.listen(path)
  await once(server, 'listening')
  await chmod(path, 0o600)
}

/**
 * A malformed request closes the connection: its sender is not the agent, or an agent of another build that will retry.
 */
async function serve(socket: Socket, handle: (request: Request) => Answer): Promise<void> {
  socket.on('error', () => {})
  for await (const line of createInterface({ input: socket })) {
    const answer = handle(Request.parse(JSON.parse(line)))
    socket.write(toLine(answer))
  }
}
