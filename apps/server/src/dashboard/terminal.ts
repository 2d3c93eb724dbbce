/**
 * A terminal of a sandbox over a WebSocket. Binary messages carry bytes of the pty, text messages JSON. The process
 * outlives the connection: a page that reconnects names its process ID. Nothing here wakes or extends a sandbox.
 */
import { z } from 'zod'
import type { RawData, WebSocket } from 'ws'
import { createSandboxClient } from '@atoll/client/sandbox'
import type { ProcessClient } from '@atoll/client/sandbox'
import { faultFromConnect } from '@atoll/client/connect-fault'
import type { ProcessSelector } from '@atoll/contracts/gen/process/process_pb'
import { createFlow } from './terminal-flow.ts'
import type { Flow } from './terminal-flow.ts'
import type { SandboxAccess } from './sandbox-access.ts'

export interface TerminalRequest {
  readonly size: { readonly cols: number; readonly rows: number }
  /** Attaches to this process instead of starting one. */
  readonly pid?: number | undefined
}

const side = z.coerce.number().int().min(1).max(1_000)
const Query = z.object({
  cols: side.default(80),
  rows: side.default(24),
  pid: z.coerce.number().int().min(1).optional(),
})

/** Returns undefined for a query that is not valid. */
export function parseTerminalQuery(query: URLSearchParams): TerminalRequest | undefined {
  const { data } = Query.safeParse(Object.fromEntries(query))
  return data && { size: { cols: data.cols, rows: data.rows }, pid: data.pid }
}

const Control = z.union([
  z.object({ ack: z.int().min(0) }),
  z.object({ resize: z.object({ cols: side, rows: side }) }),
])

/** Marks processes that are terminals of the dashboard, so that a page finds them again. */
const tag = 'dashboard-terminal'
const mostWaitingInputBytes = 256 * 1024

export async function runTerminal(
  socket: WebSocket,
  request: TerminalRequest,
  target: { readonly url: string; readonly access: SandboxAccess; readonly signal: AbortSignal },
): Promise<void> {
  const client = createSandboxClient({ url: target.url, ...target.access })
  const closed = new AbortController()
  socket.once('close', () => closed.abort())
  const signal = AbortSignal.any([closed.signal, target.signal])
  const flow = createFlow(signal)
  const tell = (message: object) => socket.send(JSON.stringify(message))
  try {
    const events = request.pid
      ? client.connect({ process: selectPid(request.pid) }, { signal })
      : client.start(startRequest(request), { signal })
    for await (const { event } of events) {
      if (event?.event.case === 'start') {
        const { pid } = event.event.value
        takeInput(socket, { client, pid, flow, signal })
        if (request.pid) await resize(client, pid, request.size)
        tell({ started: { pid } })
      } else if (event?.event.case === 'data') {
        const { value } = event.event.value.output
        if (!value) continue
        socket.send(value)
        await flow.sent(value.length)
      } else if (event?.event.case === 'end') {
        tell({ ended: { exitCode: event.event.value.exitCode } })
        return socket.close(1000)
      }
    }
    socket.close(1011)
  } catch (thrown) {
    if (closed.signal.aborted) return
    tell({ error: faultFromConnect(thrown, 'the sandbox').message.slice(0, 500) })
    socket.close(1011)
  }
}

function startRequest({ size }: TerminalRequest) {
  const envs = { TERM: 'xterm-256color', LANG: 'C.UTF-8', COLORTERM: 'truecolor' }
  return { process: { cmd: '/bin/bash', args: ['-i', '-l'], envs }, pty: { size }, tag }
}

interface TerminalProcess {
  readonly client: ProcessClient
  readonly pid: number
  readonly flow: Flow
  readonly signal: AbortSignal
}

/** Sends keys in order, one request at a time; a sandbox that reads slowly slows the browser. */
function takeInput(socket: WebSocket, { client, pid, flow, signal }: TerminalProcess): void {
  let waiting: Buffer[] = []
  let waitingBytes = 0
  let isSending = false
  const sendWaiting = async () => {
    if (isSending) return
    isSending = true
    try {
      while (waiting.length > 0) {
        const value = Buffer.concat(waiting)
        waiting = []
        waitingBytes = 0
        socket.resume()
        const input = { input: { case: 'pty' as const, value } }
        await client.sendInput({ process: selectPid(pid), input }, { signal })
      }
    } catch {
      socket.close(1011)
    } finally {
      isSending = false
    }
  }
  const queue = (bytes: Buffer) => {
    waiting.push(bytes)
    waitingBytes += bytes.length
    if (waitingBytes > mostWaitingInputBytes) socket.pause()
    void sendWaiting()
  }
  const control = (text: string) => {
    const message = parseControl(text)
    if (!message) socket.close(1008)
    else if ('ack' in message) flow.acknowledged(message.ack)
    // A process that has ended needs no size.
    else resize(client, pid, message.resize).catch(() => {})
  }
  socket.on('message', (data: RawData, isBinary: boolean) => {
    const bytes = toBuffer(data)
    if (isBinary) queue(bytes)
    else control(bytes.toString('utf8'))
  })
}

async function resize(client: ProcessClient, pid: number, size: TerminalRequest['size']) {
  await client.update({ process: selectPid(pid), pty: { size } }, { timeoutMs: 10_000 })
}

function parseControl(text: string): z.infer<typeof Control> | undefined {
  try {
    return Control.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

function selectPid(value: number): { selector: ProcessSelector['selector'] } {
  return { selector: { case: 'pid', value } }
}

function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
