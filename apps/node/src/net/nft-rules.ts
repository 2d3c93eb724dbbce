import { closedRanges, formatRange, isEverything, toRanges } from '@atoll/kit/address-ranges'
import type { Installation } from '../domain/host/installation.ts'
import type { NetworkRules } from '@atoll/contracts/network/rules'
import type { Slot } from '../domain/network/slot.ts'
import type { EgressPorts } from './egress.ts'

function chainOf(slot: Slot): string {
  return `slot_${slot.number}`
}

export function ruleLines(table: string, slot: Slot, rules: NetworkRules | undefined): string[] {
  const chain = `${table} ${chainOf(slot)}`
  const verdicts = [
    { entries: rules?.allowOut ?? [], verdict: 'accept' },
    { entries: rules?.denyOut ?? [], verdict: 'goto refusal' },
  ]
  // TCP must not bypass the proxy.
  const onlyToProxy = rules?.proxy ? [`add rule ${chain} meta l4proto tcp goto refusal`] : []
  return [
    `add chain ${chain}`,
    `flush chain ${chain}`,
    ...onlyToProxy,
    ...verdicts
      .filter(({ entries }) => entries.length > 0)
      .map(({ entries, verdict }) => `add rule ${chain} ${destination(entries)} ${verdict}`),
    `add element ${table} rules { "${slot.link}" : jump ${chainOf(slot)} }`,
  ]
}

export function ruleRemoval(table: string, slot: Slot): string[] {
  const chain = `${table} ${chainOf(slot)}`
  return [
    `delete element ${table} rules { "${slot.link}" }`,
    `flush chain ${chain}`,
    `delete chain ${chain}`,
  ]
}

export function redirectLines(
  table: string,
  slot: Slot,
  { allowNames = [] }: NetworkRules,
): string[] {
  return [
    `add element ${table} redirected { "${slot.link}" : goto to_egress }`,
    ...(allowNames.length > 0
      ? [`add element ${table} dns_redirected { "${slot.link}" : goto to_dns }`]
      : []),
  ]
}

/** Adds each element before it deletes it: deleting a missing element fails, adding an existing one does nothing. */
export function redirectRemoval(table: string, slot: Slot): string[] {
  const [tcp, dns] = [`redirected { "${slot.link}"`, `dns_redirected { "${slot.link}"`]
  return [
    `add element ${table} ${tcp} : goto to_egress }`,
    `delete element ${table} ${tcp} }`,
    `add element ${table} ${dns} : goto to_dns }`,
    `delete element ${table} ${dns} }`,
  ]
}

/** Returns a packet mark that other software on the host is unlikely to use. */
export function egressMark({ tag }: Installation): number {
  return 0xa00_00000 + Number.parseInt(tag, 16)
}

export function egressLines(
  table: string,
  linkPrefix: string,
  mark: number,
  ports: EgressPorts,
): string[] {
  const ours = `iifname "${linkPrefix}*"`
  const { port, namePort } = ports
  const syn = 'tcp flags & (fin | syn | rst | ack) == syn'
  const toPort = `tproxy ip to 127.0.0.1:${port} meta mark set ${mark}`
  return [
    ...['egress_input', 'to_egress', 'to_dns'].map((chain) => `flush chain ${table} ${chain}`),
    `add rule ${table} egress_input ${ours} meta mark ${mark} accept`,
    `add rule ${table} egress_input ${ours} udp dport ${namePort} ${overLimit('dns_queries')} drop`,
    `add rule ${table} egress_input ${ours} udp dport ${namePort} ct status dnat accept`,
    `add rule ${table} egress_input udp dport ${namePort} drop`,
    `add rule ${table} egress_input ${ours} ct status dnat drop`,
    `add rule ${table} to_egress ip daddr @closed return`,
    `add rule ${table} to_egress fib daddr type local return`,
    `add rule ${table} to_egress ${syn} ${overLimit('new_connections')} drop`,
    // The tproxy rules do nothing while the egress process is down, and the packet continues unmarked. The last rule
    // covers connections that the kernel answered with SYN cookies: it has no socket for them.
    `add rule ${table} to_egress ${syn} ${toPort} ct mark set ${mark} accept`,
    `add rule ${table} to_egress socket transparent 1 meta mark set ${mark} accept`,
    `add rule ${table} to_egress meta l4proto tcp ct mark ${mark} ${toPort} accept`,
    `add rule ${table} to_dns udp dport 53 redirect to :${namePort}`,
  ]
}

/** Limits the rate per sandbox: one egress process serves all. */
function overLimit(set: 'new_connections' | 'dns_queries'): string {
  return `add @${set} { iifname limit rate over 500/second burst 500 packets }`
}

/** Matches the address that the sandbox connected to, for packets in both directions. */
function destination(entries: readonly string[]): string {
  const ranges = toRanges(entries)
  if (isEverything(ranges)) return ''
  return `ct original ip daddr { ${ranges.map(formatRange).join(', ')} }`
}

/** Returns the whole table, without slots and without the rules of the egress process. */
export function tableText(table: string, linkPrefix: string, subnet: string): string {
  const ours = `"${linkPrefix}*"`
  const chains = [redirectChains(ours), recordChains(ours), filterChains(ours, subnet)]
  return `table ${table} {${setsText}${chains.join('')}}`
}

/** Time for which a connection stays in the records after its last packet. */
export const recordSeconds = 1800

const recordedKey = 'ifname . ipv4_addr . inet_proto . inet_service'

const setsText = `
  set slots { type ifname . ipv4_addr; }
  map rules { type ifname : verdict; }
  map redirected { type ifname : verdict; }
  map dns_redirected { type ifname : verdict; }
  set new_connections { type ifname; flags dynamic; size 65536; }
  set dns_queries { type ifname; flags dynamic; size 65536; }
  set allowed_connections { type ${recordedKey}; flags dynamic,timeout; size 16384; timeout ${recordSeconds}s; }
  set denied_connections { type ${recordedKey}; flags dynamic,timeout; size 16384; timeout ${recordSeconds}s; }
  set new_records { type ifname; flags dynamic,timeout; size 65536; timeout ${recordSeconds}s; }
  set closed { type ipv4_addr; flags interval; elements = { ${closedRanges.join(', ')} } }
`

/** Chains before routing: drop forged packets, and redirect to the egress process. */
function redirectChains(ours: string): string {
  return `
  chain from_sandbox {
    type filter hook prerouting priority raw; policy accept;
    iifname ${ours} jump check_source
  }
  chain check_source {
    meta nfproto != ipv4 drop
    iifname . ip saddr != @slots drop
  }
  chain tcp_redirect {
    type filter hook prerouting priority mangle; policy accept;
    iifname ${ours} meta l4proto tcp iifname vmap @redirected
  }
  chain to_egress {
  }
  chain dns_redirect {
    type nat hook prerouting priority dstnat; policy accept;
    iifname ${ours} meta l4proto udp iifname vmap @dns_redirected
  }
  chain to_dns {
  }
  chain egress_input {
  }
`
}

/**
 * Chains that count connections by sandbox, address, protocol and port. Only new and refused connections get here. A
 * sandbox can add few entries per minute, and they are removed with its slot. Many sandboxes can still fill a set that all
 * share: then it counts no further destinations until entries go.
 */
function recordChains(ours: string): string {
  const key = 'iifname . ip daddr . meta l4proto . th dport'
  const recorder = (set: string) => `
    meta l4proto != { tcp, udp } return
    ${key} != @${set} update @new_records { iifname limit rate over 10/minute burst 100 packets } return
    update @${set} { ${key} counter }`
  return `
  chain record_allowed {${recorder('allowed_connections')}
  }
  chain record_denied {${recorder('denied_connections')}
  }
  chain passed {
    type filter hook forward priority filter - 4; policy accept;
    iifname ${ours} ct state new jump record_allowed
  }
`
}

/** Chains that accept or refuse packets, and the address translation of what leaves the host. */
function filterChains(ours: string, subnet: string): string {
  return `
  chain to_host {
    type filter hook input priority filter - 5; policy accept;
    jump egress_input
    iifname ${ours} ct state established,related accept
    iifname ${ours} tcp flags & (fin | syn | rst | ack) == syn goto refusal
    iifname ${ours} drop
  }
  chain through {
    type filter hook forward priority filter - 5; policy accept;
    iifname ${ours} jump outgoing
    oifname ${ours} jump incoming
  }
  chain outgoing {
    ct state invalid,untracked drop
    oifname ${ours} goto refusal
    ct direction reply accept
    ip daddr @closed goto refusal
    iifname vmap @rules
  }
  chain incoming {
    ct state established,related goto replies
    drop
  }
  chain replies {
    oifname vmap @rules
  }
  chain refusal {
    iifname ${ours} ct direction original jump record_denied
    meta l4proto tcp reject with tcp reset
    drop
  }
  chain leaving {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${subnet} oifname != ${ours} masquerade
  }
`
}
