/** Listening socket from /proc/net/tcp or tcp6. */
export interface Listener {
  readonly port: number
  readonly scope: ListenScope
}

/** `loopback4` is 127.0.0.1, `loopback6` is ::1, `any` means all addresses. */
export type ListenScope = 'loopback4' | 'loopback6' | 'any' | 'other'

/** Parses /proc/net/tcp or tcp6. Skips malformed lines, such as the last line of a truncated table. */
export function parseListeners(table: string): Listener[] {
  return [...table.matchAll(listeningLine)].map(([, address = '', port = '']) => ({
    port: Number.parseInt(port, 16),
    scope: scopes.get(address) ?? 'other',
  }))
}

/**
 * Matches lines such as `  0: 0100007F:1F90 00000000:0000 0A …`: index, local and remote address, state. 0A is
 * LISTEN.
 */
const listeningLine = /^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm

/** The kernel prints addresses as 32-bit words in host byte order. */
const scopes: ReadonlyMap<string, ListenScope> = new Map([
  ['0100007F', 'loopback4'],
  ['00000000000000000000000001000000', 'loopback6'],
  ['0000000000000000FFFF00000100007F', 'loopback4'],
  ['00000000', 'any'],
  ['00000000000000000000000000000000', 'any'],
])

/** Returns the ports that are reachable on loopback only, with the loopback address of each. */
export function loopbackOnlyPorts(listeners: readonly Listener[]): ReadonlyMap<number, string> {
  const onAny = new Set(listeners.filter(({ scope }) => scope === 'any').map(({ port }) => port))
  const loopbackOnly = new Map<number, string>()
  for (const { port, scope } of listeners) {
    if (onAny.has(port)) continue
    if (scope === 'loopback4') loopbackOnly.set(port, '127.0.0.1')
    if (scope === 'loopback6' && !loopbackOnly.has(port)) loopbackOnly.set(port, '::1')
  }
  return loopbackOnly
}

/**
 * Forwards connections from a port of `address` to the same port of `host`. Returns undefined if the port is taken.
 */
export type ForwardPort = (
  address: string,
  port: number,
  host: string,
) => Promise<PortForward | undefined>

export interface PortForward {
  close(): Promise<void>
}
