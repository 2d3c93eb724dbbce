/**
 * Messages of the live connection. Text messages are JSON with the number of a channel in `c`. Binary messages carry
 * bytes of a terminal: four bytes with the number of the channel, most significant first, then the bytes.
 */
import { z } from 'zod'

const dimension = z.int().min(1).max(1_000)
const TerminalSize = z.object({ cols: dimension, rows: dimension })
const channel = z.int().min(1).max(0xffff_ffff)

const maxWatchedPaths = 100

const TerminalRequest = z.object({
  sandboxId: z.string().regex(/^[a-z0-9]{1,63}$/),
  size: TerminalSize,
  /** ID of the process to attach to. Without it, a new shell is started. */
  pid: z.int().min(1).optional(),
  /** ID of a recording to continue. */
  recording: z.string().max(120).optional(),
})

const WatchRequest = z.object({
  /** Paths of this server, with the tag of the answer that the page has. */
  paths: z
    .array(z.object({ path: z.string().startsWith('/').max(8_000), tag: z.string().max(64) }))
    .min(1)
    .max(maxWatchedPaths),
  everyMs: z.int().min(1_000).max(60_000),
})

const OpenRequest = z.union([
  z.object({ terminal: TerminalRequest }),
  z.object({ watch: WatchRequest }),
])

const ChannelControl = z.union([
  z.object({ ack: z.int().min(0) }),
  z.object({ resize: TerminalSize }),
  z.object({ record: z.boolean() }),
])

const PageMessage = z.union([
  z.object({ c: channel, open: OpenRequest }),
  z.object({ c: channel, close: z.literal(true) }),
  z.object({ c: channel, control: ChannelControl }),
  z.object({ isVisible: z.boolean() }),
])

export type TerminalRequest = z.infer<typeof TerminalRequest>
export type TerminalSize = z.infer<typeof TerminalSize>
export type WatchRequest = z.infer<typeof WatchRequest>
export type OpenRequest = z.infer<typeof OpenRequest>
export type ChannelControl = z.infer<typeof ChannelControl>
export type PageMessage = z.infer<typeof PageMessage>

/** Returns undefined for a message that no page sends. */
export function parsePageMessage(text: string): PageMessage | undefined {
  try {
    return PageMessage.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

const numberBytes = 4

export function toFrame(number: number, bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(numberBytes + bytes.length)
  frame.writeUInt32BE(number)
  frame.set(bytes, numberBytes)
  return frame
}

/** Returns undefined for a message without the number of a channel. */
export function fromFrame(frame: Buffer): { number: number; bytes: Buffer } | undefined {
  if (frame.length < numberBytes) return undefined
  return { number: frame.readUInt32BE(), bytes: frame.subarray(numberBytes) }
}
