/** Wire format of the spawner. The other side is apps/envd/guest/spawner.c. */
import type { ExitStatus } from '../exit-status.ts'

export interface SpawnRequest {
  /** Files or pipes to open for stdin, stdout and stderr. A pipe's other end must be open. Undefined: /dev/null. */
  readonly stdio: readonly [
    stdin: string | undefined,
    stdout: string | undefined,
    stderr: string | undefined,
  ]
  /** Arguments as on the command line of the guest program. */
  readonly args: readonly string[]
  /** Empty: the environment of the spawner. */
  readonly env: Readonly<Record<string, string>>
}

export type SpawnReply =
  | { readonly kind: 'started'; readonly id: number; readonly pid: number }
  | { readonly kind: 'refused'; readonly id: number; readonly errno: number }
  | { readonly kind: 'ended'; readonly pid: number; readonly exit: ExitStatus }

export function encodeRequest(id: number, { stdio, args, env }: SpawnRequest): Buffer {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const texts = [...stdio.map((name) => name ?? ''), ...args, ...variables]
  const body = Buffer.from(texts.map((text) => `${text}\0`).join(''))
  const header = Uint32Array.of(id, body.length, args.length, variables.length)
  return Buffer.concat([Buffer.from(header.buffer), body])
}

/** Accepts bytes as they arrive and returns the complete replies. */
export function createReplyReader(): (chunk: Buffer) => SpawnReply[] {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    const bytes = Buffer.concat([rest, chunk])
    const count = Math.floor(bytes.length / replyBytes)
    rest = bytes.subarray(count * replyBytes)
    return Array.from({ length: count }, (_, at) => decodeReply(bytes, at * replyBytes))
  }
}

const replyBytes = 12

function decodeReply(bytes: Buffer, at: number): SpawnReply {
  const [kind, id, value] = [0, 4, 8].map((offset) => bytes.readUInt32LE(at + offset))
  if (id === undefined || value === undefined) throw new Error('Invalid spawner reply: too short')
  if (kind === 1) return { kind: 'started', id, pid: value }
  if (kind === 2) return { kind: 'refused', id, errno: value }
  if (kind === 3) return { kind: 'ended', pid: id, exit: toExit(value) }
  throw new Error(`Invalid spawner reply: unknown kind ${kind}`)
}

/** Decodes a wait(2) status: the signal in the lower seven bits, or the exit code in the next byte. */
function toExit(status: number): ExitStatus {
  const signal = status & 0x7f
  return signal === 0 ? { by: 'exit', code: (status >> 8) & 0xff } : { by: 'signal', signal }
}
