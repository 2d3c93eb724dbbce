/** Sockets that listen, as /proc/net/tcp and tcp6 list them. */
export interface Listener {
  readonly port: number
  readonly scope: ListenScope
}

/** `loopback4` and `loopback6` are 127.0.0.1 and ::1, `any` all addresses. */
export type ListenScope = 'loopback4' | 'loopback6' | 'any' | 'other'

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
const scopes: ReadonlyMap<string, ListenScope> = new Map([
  ['0100007F', 'loopback4'],
  ['00000000000000000000000001000000', 'loopback6'],
  ['0000000000000000FFFF00000100007F', 'loopback4'],
  ['00000000', 'any'],
  ['00000000000000000000000000000000', 'any'],
])

/** The ports that nobody outside can reach, and where they are. */
export function loopbackOnlyPorts(listeners: readonly Listener[]): ReadonlyMap<number, string> {
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
export type ForwardPort = (
  address: string,
  port: number,
  host: string,
) => Promise<PortForward | undefined>

export interface PortForward {
  close(): Promise<void>
}
