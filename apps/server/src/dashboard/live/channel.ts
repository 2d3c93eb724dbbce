import type { ChannelControl } from './messages.ts'

/** Server side of one channel of a live connection. */
export interface Channel {
  /** Takes bytes that a user typed. A channel without input ends when it gets some. */
  input?(bytes: Buffer): void
  control(message: ChannelControl): void
}

/** Access of a channel to its connection. */
export interface ChannelPort {
  /** Aborted when the page closes the channel, and when the connection ends. */
  readonly signal: AbortSignal
  send(message: object): void
  sendBytes(bytes: Uint8Array): void
  /** Sends a last message, and frees the channel. */
  end(message?: object): void
  /** False while the page is in the background. */
  isVisible(): boolean
}

/** An error as the pages show it. */
export interface ChannelError {
  readonly status: number
  readonly message: string
}
