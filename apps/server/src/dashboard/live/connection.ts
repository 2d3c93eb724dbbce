/**
 * One WebSocket with many channels. A channel is a terminal or a set of watched answers. Each has its own flow control, so
 * a terminal that prints without end holds up no other channel.
 */
import type { RawData, WebSocket } from 'ws'
import { Fault } from '@atoll/kit/fault'
import { statusOfKind } from '../responses.ts'
import type { Channel, ChannelError, ChannelPort } from './channel.ts'
import { createMessageRate } from './message-rate.ts'
import { fromFrame, parsePageMessage, toFrame } from './messages.ts'
import type { OpenRequest, PageMessage } from './messages.ts'

export interface ConnectionParts {
  openChannel(request: OpenRequest, port: ChannelPort): Channel
  /** Aborted when the server or the session ends. */
  readonly signal: AbortSignal
}

const maxChannels = 128
/** Windows of the channels bound what waits here; more than this means that the page has stopped reading. */
const maxWaitingBytes = 128 * 2 ** 20
const pingMs = 30_000

interface OpenChannel {
  readonly closing: AbortController
  readonly channel: Channel
}

export function serveConnection(socket: WebSocket, parts: ConnectionParts): void {
  const channels = new Map<number, OpenChannel>()
  const rate = createMessageRate()
  let isVisible = true

  const send = (data: string | Buffer) => {
    if (socket.readyState !== socket.OPEN) return
    socket.send(data)
    if (socket.bufferedAmount > maxWaitingBytes) socket.terminate()
  }
  const free = (number: number) => {
    channels.get(number)?.closing.abort()
    channels.delete(number)
  }
  const open = (number: number, request: OpenRequest) => {
    const closing = new AbortController()
    const port = createPort(number, {
      ...{ closing, send, free, signal: parts.signal },
      isVisible: () => isVisible,
    })
    if (channels.has(number)) return socket.close(1008, 'the channel is open already')
    if (channels.size >= maxChannels) {
      const message = `This page has ${maxChannels} open channels, the limit. Close terminals.`
      return port.end({ error: { status: 429, message } })
    }
    channels.set(number, { closing, channel: parts.openChannel(request, port) })
  }
  const handle = (message: PageMessage) => {
    if ('isVisible' in message) isVisible = message.isVisible
    else if ('open' in message) open(message.c, message.open)
    else if ('close' in message) free(message.c)
    // A channel that the server has ended may still get messages that were on their way.
    else channels.get(message.c)?.channel.control(message.control)
  }
  const receive = (data: Buffer, isBinary: boolean) => {
    if (isBinary) {
      const frame = fromFrame(data)
      if (!frame) return socket.close(1008, 'a message without a channel')
      return channels.get(frame.number)?.channel.input?.(frame.bytes)
    }
    const message = parsePageMessage(data.toString('utf8'))
    if (!message) return socket.close(1008, 'a message that this server does not know')
    return handle(message)
  }

  socket.on('error', () => {}) // `close` follows
  socket.on('message', (data: RawData, isBinary: boolean) => {
    receive(toBuffer(data), isBinary)
    const waitMs = rate.count(performance.now())
    if (waitMs === 0 || socket.isPaused) return
    socket.pause()
    setTimeout(() => socket.resume(), waitMs)
  })
  const stopPinging = ping(socket)
  socket.once('close', () => {
    stopPinging()
    for (const number of channels.keys()) free(number)
  })
}

function createPort(
  number: number,
  parts: {
    readonly closing: AbortController
    readonly signal: AbortSignal
    send(data: string | Buffer): void
    free(number: number): void
    isVisible(): boolean
  },
): ChannelPort {
  const { closing, send } = parts
  const sendMessage = (message: object) => {
    if (!closing.signal.aborted) send(JSON.stringify({ c: number, ...message }))
  }
  return {
    signal: AbortSignal.any([closing.signal, parts.signal]),
    send: sendMessage,
    sendBytes(bytes) {
      if (!closing.signal.aborted) send(toFrame(number, bytes))
    },
    end(message = {}) {
      sendMessage({ ...message, closed: true })
      parts.free(number)
    },
    isVisible: parts.isVisible,
  }
}

/** Ends a connection whose page does not answer pings, for example after the computer lost its network. */
function ping(socket: WebSocket): () => void {
  let isAnswered = true
  socket.on('pong', () => (isAnswered = true))
  const timer = setInterval(() => {
    if (!isAnswered && !socket.isPaused) return socket.terminate()
    isAnswered = false
    return socket.ping()
  }, pingMs)
  return () => clearInterval(timer)
}

export function toChannelError(thrown: unknown): ChannelError {
  const { kind, message } = Fault.from(thrown)
  return { status: statusOfKind[kind], message: message.slice(0, 1_000) }
}

function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
