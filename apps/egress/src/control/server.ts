/** The door for the agent of the node. */
import { chmod, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { Request, toLine } from './messages.ts'
import type { Answer } from './messages.ts'

/** `handle` is called for one request at a time of each caller. */
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

/** Whoever says what is no request is not the agent, or one of another build: both are to try anew. */
async function serve(socket: Socket, handle: (request: Request) => Answer): Promise<void> {
  socket.on('error', () => {})
  for await (const line of createInterface({ input: socket })) {
    const answer = handle(Request.parse(JSON.parse(line)))
    socket.write(toLine(answer))
  }
}
