/** Sockets that listen, as /proc/net/tcp and tcp6 list them. */
export interface Listener {
  readonly port: number
  readonly scope: Scope
}

/** `loopback4` and `loopback6` are 127.0.0.1 and ::1, `any` all addresses. */
export type Scope = 'loopback4' | 'loopback6' | 'any' | 'other'

/** Lines that cannot be read are passed over, so a table that was cut short is too. */
export function parseListeners(table: string): Listener[] {
  return [...table.matchAll(listening)].map(([, address = '', port = '']) => ({
    port: Number.parseInt(port, 16),
    scope: scopes.get(address) ?? 'other',
  }))
}

/** `  0: 0100007F:1F90 00000000:0000 0A …`: number, local and remote address, state; 0A is LISTEN. */
const listening = /^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm

/** Addresses are written word by word in the byte order of the machine. */
const scopes: ReadonlyMap<string, Scope> = new Map([
  ['0100007F', 'loopback4'],
  ['00000000000000000000000001000000', 'loopback6'],
  ['0000000000000000FFFF00000100007F', 'loopback4'],
  ['00000000', 'any'],
  ['00000000000000000000000000000000', 'any'],
])

/** How many connections with the outside the table shows, of those that somebody still has open. */
export function countOutside(table: string): number {
  return [...table.matchAll(connected)].filter(([, remote = '']) => !isLoopback(remote)).length
}

/** States: 01 ESTABLISHED, 02 SYN_SENT, 03 SYN_RECV, 08 CLOSE_WAIT. */
const connected = /^ *\d+: [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{8}|[0-9A-F]{32}):[0-9A-F]{4} 0[1238] /gm

/** 127.0.0.0/8, plain or mapped into IPv6, or ::1. */
function isLoopback(address: string): boolean {
  return /^(0{16}FFFF0000)?[0-9A-F]{6}7F$/.test(address) || scopes.get(address) === 'loopback6'
}

/** The ports that nobody outside can reach, and where they are. */
export function hiddenPorts(listeners: readonly Listener[]): ReadonlyMap<number, string> {
  const open = new Set(listeners.filter(({ scope }) => scope === 'any').map(({ port }) => port))
  const hidden = new Map<number, string>()
  for (const { port, scope } of listeners) {
    if (open.has(port)) continue
    if (scope === 'loopback4') hidden.set(port, '127.0.0.1')
    if (scope === 'loopback6' && !hidden.has(port)) hidden.set(port, '::1')
  }
  return hidden
}

/** Passes connections to a port of `address` on to the same port of `host`. Undefined when the port is taken there. */
export type Forward = (
  address: string,
  port: number,
  host: string,
) => Promise<Forwarding | undefined>

export interface Forwarding {
  /** Resets the connections there are; others may come. */
  cut(): void
  close(): Promise<void>
}
