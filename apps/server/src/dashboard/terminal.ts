/**
 * Connects a page of the dashboard to a terminal in a sandbox, over a WebSocket. Binary messages carry bytes of the
 * pty, text messages JSON. The process outlives the connection: a page that reconnects sends the process ID. A terminal
 * neither resumes a paused sandbox nor extends its timeout.
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
  /** ID of the process to attach to. Without it, a new shell is started. */
  readonly pid?: number | undefined
}

const dimension = z.coerce.number().int().min(1).max(1_000)
const Query = z.object({
  cols: dimension.default(80),
  rows: dimension.default(24),
  pid: z.coerce.number().int().min(1).optional(),
})

/** Returns undefined if the query is invalid. */
export function parseTerminalQuery(query: URLSearchParams): TerminalRequest | undefined {
  const { data } = Query.safeParse(Object.fromEntries(query))
  return data && { size: { cols: data.cols, rows: data.rows }, pid: data.pid }
}

const ControlMessage = z.union([
  z.object({ ack: z.int().min(0) }),
  z.object({ resize: z.object({ cols: dimension, rows: dimension }) }),
])

/** Marks processes that are terminals of the dashboard, so that a reloaded page can find them. */
const tag = 'dashboard-terminal'
const maxQueuedInputBytes = 256 * 1024

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
  const sendMessage = (message: object) => socket.send(JSON.stringify(message))
  try {
    const events = request.pid
      ? client.connect({ process: selectPid(request.pid) }, { signal })
      : client.start(startRequest(request), { signal })
    for await (const { event } of events) {
      if (event?.event.case === 'start') {
        const { pid } = event.event.value
        forwardInput(socket, { client, pid, flow, signal })
        if (request.pid) await resize(client, pid, request.size)
        sendMessage({ started: { pid } })
      } else if (event?.event.case === 'data') {
        const { value } = event.event.value.output
        if (!value) continue
        socket.send(value)
        await flow.sent(value.length)
      } else if (event?.event.case === 'end') {
        sendMessage({ ended: { exitCode: event.event.value.exitCode } })
        return socket.close(1000)
      }
    }
    socket.close(1011)
  } catch (thrown) {
    if (closed.signal.aborted) return
    sendMessage({ error: faultFromConnect(thrown, 'the sandbox').message.slice(0, 500) })
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

/** Forwards input in order, one request at a time. While the sandbox reads slowly, the WebSocket is paused. */
function forwardInput(socket: WebSocket, { client, pid, flow, signal }: TerminalProcess): void {
  let queued: Buffer[] = []
  let queuedBytes = 0
  let isSending = false
  const sendQueued = async () => {
    if (isSending) return
    isSending = true
    try {
      while (queued.length > 0) {
        const value = Buffer.concat(queued)
        queued = []
        queuedBytes = 0
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
  const enqueue = (bytes: Buffer) => {
    queued.push(bytes)
    queuedBytes += bytes.length
    if (queuedBytes > maxQueuedInputBytes) socket.pause()
    void sendQueued()
  }
  const handleControl = (text: string) => {
    const message = parseControl(text)
    if (!message) socket.close(1008)
    else if ('ack' in message) flow.acknowledged(message.ack)
    // Fails if the process has ended, which needs no resize.
    else resize(client, pid, message.resize).catch(() => {})
  }
  socket.on('message', (data: RawData, isBinary: boolean) => {
    const bytes = toBuffer(data)
    if (isBinary) enqueue(bytes)
    else handleControl(bytes.toString('utf8'))
  })
}

async function resize(client: ProcessClient, pid: number, size: TerminalRequest['size']) {
  await client.update({ process: selectPid(pid), pty: { size } }, { timeoutMs: 10_000 })
}

function parseControl(text: string): z.infer<typeof ControlMessage> | undefined {
  try {
    return ControlMessage.safeParse(JSON.parse(text)).data
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
