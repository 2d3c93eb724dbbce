import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { Answer, toLine } from '@atoll/egress/control'
import type { Request } from '@atoll/egress/control'

/** Control connection to an egress process. */
export interface EgressConnection {
  /** Sends one request at a time. */
  ask(request: Request): Promise<Answer>
  /** Calls the listener once the connection is closed by either side, or immediately when it already is. */
  onClose(listener: () => void): void
  close(): void
}

const answerLimitMs = 10_000

export async function isListening(path: string): Promise<boolean> {
  const connection = await connectToEgress(path)
  connection?.close()
  return connection !== undefined
}

/** Returns undefined when no process listens on the socket. */
export async function connectToEgress(path: string): Promise<EgressConnection | undefined> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
  } catch {
    return undefined
  }
  return openConnection(socket)
}

function openConnection(socket: Socket): EgressConnection {
  socket.on('error', () => {}) // 'close' follows every error
  const lines = createInterface({ input: socket })
  socket.once('close', () => lines.close()) // destroy() emits no 'end'
  const answers = lines[Symbol.asyncIterator]()
  let last: Promise<unknown> = Promise.resolve()

  async function exchange(request: Request): Promise<Answer> {
    socket.write(toLine(request))
    // Disconnect a hung process: the close triggers its replacement.
    const giveUp = setTimeout(() => socket.destroy(), answerLimitMs)
    const { value, done } = await answers.next().finally(() => clearTimeout(giveUp))
    if (done) throw new Error('the egress process closed the control connection')
    return Answer.parse(JSON.parse(value))
  }

  return {
    ask(request) {
      const answer = last.then(() => exchange(request))
      last = answer.catch(() => {})
      return answer
    },
    onClose: (listener) => void (socket.closed ? listener() : socket.once('close', listener)),
    close: () => void socket.destroy(),
  }
}
