/**
 * The live connection: one WebSocket for everything that changes by itself. It reconnects with growing delays and opens
 * its channels again.
 */
import { signal } from '@preact/signals'
import { fromFrame, toFrame } from '../model/live-frames.ts'
import { reconnectDelayMs } from '../model/reconnect.ts'
import { RequestError, send, signedOut } from './request.ts'

export interface LiveMessage {
  /** The server has ended the channel. */
  readonly closed?: true
  readonly error?: { readonly status: number; readonly message: string }
  readonly [part: string]: unknown
}

export interface ChannelEvents {
  /** Describes the channel to the server, each time the connection is made. */
  request(): object
  onMessage(message: LiveMessage): void
  onBytes?(bytes: Uint8Array): void
  /** The connection is lost. The channel opens again with the next one. */
  onLost?(): void
}

export interface LiveChannel {
  control(message: object): void
  sendBytes(bytes: Uint8Array): void
  /** Opens a channel again that the server has ended. */
  reopen(): void
  close(): void
}

interface OpenChannel {
  readonly events: ChannelEvents
  /** Undefined while the channel is not open. Numbers are never used twice. */
  number: number | undefined
}

const signedOutCode = 4401

/** `lost`: there was a connection, or the first attempt failed. */
export const liveState = signal<'off' | 'connecting' | 'open' | 'lost'>('off')

const channels = new Set<OpenChannel>()
let socket: WebSocket | undefined
let attempts = 0
let timer: ReturnType<typeof setTimeout> | undefined
let lastNumber = 0

export function connectLive(): void {
  clearTimeout(timer)
  if (socket) return
  if (liveState.value === 'off') liveState.value = 'connecting'
  const made = new WebSocket('/bff/live')
  socket = made
  made.binaryType = 'arraybuffer'
  made.addEventListener('open', () => {
    attempts = 0
    liveState.value = 'open'
    reportVisibility()
    for (const channel of channels) openOnSocket(channel)
  })
  made.addEventListener('message', ({ data }) => receive(data))
  made.addEventListener('close', ({ code }) => onClose(made, code))
}

export function disconnectLive(): void {
  clearTimeout(timer)
  const old = socket
  socket = undefined
  liveState.value = 'off'
  old?.close()
}

export function openChannel(events: ChannelEvents): LiveChannel {
  const channel: OpenChannel = { events, number: undefined }
  channels.add(channel)
  openOnSocket(channel)
  return {
    control: (message) => sendJson(channel, { control: message }),
    sendBytes(bytes) {
      if (channel.number !== undefined && isOpen()) socket?.send(toFrame(channel.number, bytes))
    },
    reopen() {
      if (channel.number === undefined) openOnSocket(channel)
    },
    close() {
      channels.delete(channel)
      sendJson(channel, { close: true })
      channel.number = undefined
    },
  }
}

function isOpen(): boolean {
  return socket?.readyState === WebSocket.OPEN
}

function openOnSocket(channel: OpenChannel): void {
  if (!isOpen()) return
  channel.number = lastNumber += 1
  sendJson(channel, { open: channel.events.request() })
}

function sendJson({ number }: OpenChannel, message: object): void {
  if (number !== undefined && isOpen()) socket?.send(JSON.stringify({ c: number, ...message }))
}

function receive(data: ArrayBuffer | string): void {
  if (typeof data !== 'string') {
    const { number, bytes } = fromFrame(data)
    return findChannel(number)?.events.onBytes?.(bytes)
  }
  const { c, ...message }: LiveMessage & { readonly c: number } = JSON.parse(data)
  const channel = findChannel(c)
  if (!channel) return undefined
  if (message.closed) channel.number = undefined
  return channel.events.onMessage(message)
}

function findChannel(number: number): OpenChannel | undefined {
  for (const channel of channels) if (channel.number === number) return channel
  return undefined
}

function onClose(lost: WebSocket, code: number): void {
  if (lost !== socket) return // closed on purpose
  socket = undefined
  liveState.value = 'lost'
  for (const channel of channels) {
    channel.number = undefined
    channel.events.onLost?.()
  }
  if (code === signedOutCode) return signedOut()
  // Browsers hide from pages why a connection was refused.
  if (attempts > 0) void checkSession()
  timer = setTimeout(connectLive, reconnectDelayMs(attempts))
  attempts += 1
}

async function checkSession(): Promise<void> {
  try {
    await send('GET', '/bff/session')
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) signedOut()
  }
}

/** A page in the background needs no fresh answers. */
function reportVisibility(): void {
  if (isOpen()) socket?.send(JSON.stringify({ isVisible: document.visibilityState === 'visible' }))
}

document.addEventListener('visibilitychange', reportVisibility)
