/**
 * Connections that a sandbox has opened without an answer so far. gVisor cannot checkpoint them. It ends them with
 * EHOSTUNREACH when it gets an ICMP "host unreachable" (RFC 792), which the host sends here.
 *
 * Threats: the sandbox controls the number of connections. Above a limit nothing is sent, and its memory cannot be
 * saved.
 */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import koffi from 'koffi'

export interface HalfOpen {
  readonly from: string
  readonly fromPort: number
  readonly to: string
  readonly toPort: number
}

/** Ends the half-open connections of an address that conntrack lists. Does nothing without conntrack or raw sockets. */
export async function endHalfOpen(address: string): Promise<void> {
  const found = await listHalfOpen(address)
  if (found.length === 0 || found.length > most) return
  const { socket, sendto, close } = lazyLibc()
  const fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)
  if (fd < 0) return
  try {
    for (const [at, connection] of found.entries()) {
      const message = unreachable(connection)
      const target = Buffer.from([
        AF_INET,
        0,
        0,
        0,
        ...bytesOf(connection.from),
        ...Buffer.alloc(8),
      ])
      sendto(fd, message, message.length, 0, target, target.length)
      if (at % 64 === 63) await turn() // yield to other work
    }
  } finally {
    close(fd)
  }
}

async function listHalfOpen(address: string): Promise<HalfOpen[]> {
  const found: HalfOpen[] = []
  const table = createReadStream('/proc/net/nf_conntrack')
  try {
    for await (const line of createInterface({ input: table })) {
      const one = parseHalfOpen(line)
      if (one?.from === address) found.push(one)
      if (found.length > most) break
    }
  } catch {
    // The kernel has no conntrack table.
  } finally {
    table.destroy()
  }
  return found
}

/** Parses one line of the table. The first tuple is the direction of the request. */
export function parseHalfOpen(line: string): HalfOpen | undefined {
  const pattern = /^ipv4 +2 +tcp .* SYN_SENT src=([\d.]+) dst=([\d.]+) sport=(\d+) dport=(\d+) /
  const [, from, to, fromPort, toPort] = pattern.exec(line) ?? []
  if (from === undefined || to === undefined) return undefined
  return { from, fromPort: Number(fromPort), to, toPort: Number(toPort) }
}

const most = 4096

/** Builds an ICMP "host unreachable" message with the header of the packet that it refers to. */
export function unreachable({ from, fromPort, to, toPort }: HalfOpen): Buffer {
  const about = Buffer.alloc(28)
  about.writeUInt8(0x45)
  about.writeUInt16BE(40, 2)
  about.writeUInt8(64, 8)
  about.writeUInt8(IPPROTO_TCP, 9)
  about.set([...bytesOf(from), ...bytesOf(to)], 12)
  about.writeUInt16BE(checksum(about.subarray(0, 20)), 10)
  about.writeUInt16BE(fromPort, 20)
  about.writeUInt16BE(toPort, 22)
  const message = Buffer.concat([Buffer.from([3, 1, 0, 0, 0, 0, 0, 0]), about])
  message.writeUInt16BE(checksum(message), 2)
  return message
}

function checksum(bytes: Buffer): number {
  let sum = 0
  for (let at = 0; at < bytes.length; at += 2) sum += bytes.readUInt16BE(at)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return ~sum & 0xffff
}

function bytesOf(address: string): number[] {
  return address.split('.').map(Number)
}

const [AF_INET, SOCK_RAW, IPPROTO_ICMP, IPPROTO_TCP] = [2, 3, 1, 6]

let loaded: ReturnType<typeof loadLibc> | undefined

/** Loads libc on first use: few servers need it. */
function lazyLibc(): ReturnType<typeof loadLibc> {
  return (loaded ??= loadLibc())
}

function loadLibc() {
  const libc = koffi.load('libc.so.6')
  return {
    socket: libc.func('int socket(int, int, int)'),
    sendto: libc.func('long sendto(int, const void *, size_t, int, const void *, uint32_t)'),
    close: libc.func('int close(int)'),
  }
}
