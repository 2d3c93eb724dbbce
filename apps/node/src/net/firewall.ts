import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { closedRanges, formatRange, isEverything, toRanges } from '@atoll/kit/address-ranges'
import type { Runner } from '@atoll/kit/run'
import { tablePrefix } from '../domain/host/installation.ts'
import type { Instance } from '../domain/host/installation.ts'
import { needsEgressProxy } from '../domain/network/network-rules.ts'
import type { NetworkRules } from '../domain/network/network-rules.ts'
import type { Slot } from '../domain/network/slot.ts'
import type { Egress, EgressPorts } from './egress.ts'
import { createForwarding } from './forwarding.ts'
import { createMarkedRoute } from './marked-route.ts'

/**
 * Filters traffic between a sandbox, the host and the world. A packet finds the rules of its sandbox by interface name,
 * so the cost per packet does not grow with the number of sandboxes. Threats: a sandbox may send any packet with any
 * source address. Packets without the address of the sandbox's own slot are dropped first.
 *
 * Blocked TCP gets a reset: a pending connection would hang, and keep gVisor from pausing the sandbox. Packets that
 * belong to no connection are dropped silently: a reset could end a healthy connection.
 *
 * The rules are checked for every packet of a connection that the sandbox opened, in both directions. New rules
 * therefore apply to open connections too.
 *
 * When the rules contain names, a proxy or headers, TCP connections are redirected to the egress process; with names,
 * DNS queries too. While the egress process is down, address rules still apply, and nothing bypasses a proxy.
 */
export interface Firewall {
  /** Replaces the whole table atomically, with exactly these slots; `rules` by slot number. */
  install(slots: readonly Slot[], rules?: ReadonlyMap<number, NetworkRules>): Promise<void>
  /** Allows a slot to send within its rules. Call it before the veth pair exists. */
  admit(slot: Slot, rules?: NetworkRules): Promise<void>
  /**
   * Replaces the rules of an admitted slot atomically, before it returns; undefined removes them. One call at a time
   * per slot.
   */
  setRules(slot: Slot, rules: NetworkRules | undefined): Promise<void>
  expel(slot: Slot): Promise<void>
  /** Redirects to this egress process from now on. */
  redirectTo(ports: EgressPorts): Promise<void>
  uninstall(): Promise<void>
}

export function createFirewall(
  instance: Instance,
  subnet: string,
  { run, tryRun }: Runner,
  egress: Pick<Egress, 'setAll' | 'set' | 'stop'>,
): Firewall {
  const table = `inet ${instance.nftTable}`
  const mark = egressMark(instance)
  const route = createMarkedRoute(mark, { run, tryRun })
  const doors = (ports: EgressPorts) => doorLines(table, instance.linkPrefix, mark, ports)
  let ports: EgressPorts | undefined
  let isInstalled = false
  const forwarding = createForwarding({
    setting: '/proc/sys/net/ipv4/ip_forward',
    saved: join(dirname(instance.runDir), 'ip_forward'),
    isInUse: async () => (await run('nft', ['list', 'tables'])).includes(`inet ${tablePrefix}`),
  })
  const element = (slot: Slot) =>
    `element ${table} slots { "${slot.link}" . ${slot.sandboxAddress} }`
  /** Rules of slots that have a chain. Most slots have none. */
  const ruled = new Map<number, NetworkRules | undefined>()
  /** Slots with traffic redirected to the egress process. */
  const led = new Set<number>()
  /** Rules in force in the egress process. */
  const told = new Map<number, NetworkRules>()

  function ruleScript(slot: Slot, rules: NetworkRules | undefined): string[] {
    const isNeeded =
      rules !== undefined &&
      (rules.allowOut.length + rules.denyOut.length > 0 || needsEgressProxy(rules))
    if (!isNeeded && !ruled.has(slot.number)) return []
    const script = [...ruleLines(table, slot, rules), ...leadScript(slot, rules)]
    ruled.set(slot.number, undefined) // unknown until the script has run
    return script
  }

  function leadScript(slot: Slot, rules: NetworkRules | undefined): string[] {
    const isLed = rules !== undefined && needsEgressProxy(rules)
    const removal = led.has(slot.number) ? leadRemoval(table, slot) : []
    if (isLed) led.add(slot.number)
    return isLed ? [...removal, ...leadLines(table, slot, rules)] : removal
  }

  /** Updates the egress process before redirection starts, and after it ends. */
  async function withEgress(
    slot: Slot,
    rules: NetworkRules | undefined,
    change: () => Promise<void>,
  ): Promise<void> {
    if (rules && needsEgressProxy(rules)) {
      // If a step below fails, the rules in force are unknown.
      ruled.set(slot.number, undefined)
      await egress.set(slot.sandboxAddress, rules)
      try {
        await change()
      } catch (error) {
        await egress.set(slot.sandboxAddress, told.get(slot.number)).catch(() => {})
        throw error
      }
      told.set(slot.number, rules)
      return
    }
    await change()
    led.delete(slot.number)
    await egress.set(slot.sandboxAddress, undefined)
    told.delete(slot.number)
  }

  /** Runs a script atomically. */
  async function nft(script: readonly string[]): Promise<void> {
    if (script.length > 0) await run('nft', ['-f', '-'], { input: script.join('\n') })
  }

  /** Runs a removal; succeeds when there is nothing to remove. */
  async function discard(script: readonly string[]): Promise<void> {
    const result = await tryRun('nft', ['-f', '-'], { input: script.join('\n') })
    if (result.code !== 0 && !/No such file/.test(result.stderr)) {
      throw new Error(`nft ${script.join('; ')}: ${result.stderr.trim()}`)
    }
  }

  return {
    async install(slots, rules) {
      const frame = tableText(table, instance.linkPrefix, subnet)
      ruled.clear()
      led.clear()
      told.clear()
      isInstalled = false
      await egress.setAll(forEgress(slots, rules))
      const admitted = slots.flatMap((slot) => {
        const own = rules?.get(slot.number)
        if (own && needsEgressProxy(own)) told.set(slot.number, own)
        return [...ruleScript(slot, own), `add ${element(slot)}`]
      })
      const known = ports
      const leading = known ? doors(known) : []
      await nft([`table ${table}`, `delete table ${table}`, frame, ...leading, ...admitted])
      isInstalled = true
      // The egress process may have been replaced meanwhile.
      if (ports && ports !== known) await nft(doors(ports))
      await forwarding.enable()
    },

    async admit(slot, rules) {
      const change = () => nft([...ruleScript(slot, rules), `add ${element(slot)}`])
      await withEgress(slot, rules, change)
    },

    async setRules(slot, rules) {
      const known = ruled.get(slot.number)
      if (known && isDeepStrictEqual(known, rules)) return
      await withEgress(slot, rules, () => nft(ruleScript(slot, rules)))
      if (ruled.has(slot.number)) ruled.set(slot.number, rules)
    },

    async expel(slot) {
      await discard([`delete ${element(slot)}`])
      if (!ruled.has(slot.number)) return
      await withEgress(slot, undefined, async () => {
        if (led.has(slot.number)) await discard(leadRemoval(table, slot))
        await discard(ruleRemoval(table, slot))
      })
      ruled.delete(slot.number)
    },

    async redirectTo(next) {
      ports = next
      await route.add()
      if (isInstalled) await nft(doors(next))
    },

    async uninstall() {
      await nft([`table ${table}`, `delete table ${table}`])
      await egress.stop()
      await route.remove()
      await forwarding.release()
    },
  }
}

function chainOf(slot: Slot): string {
  return `slot_${slot.number}`
}

function ruleLines(table: string, slot: Slot, rules: NetworkRules | undefined): string[] {
  const chain = `${table} ${chainOf(slot)}`
  const verdicts = [
    { entries: rules?.allowOut ?? [], verdict: 'accept' },
    { entries: rules?.denyOut ?? [], verdict: 'goto refusal' },
  ]
  // TCP must not bypass the proxy.
  const toProxyAlone = rules?.proxy ? [`add rule ${chain} meta l4proto tcp goto refusal`] : []
  return [
    `add chain ${chain}`,
    `flush chain ${chain}`,
    ...toProxyAlone,
    ...verdicts
      .filter(({ entries }) => entries.length > 0)
      .map(({ entries, verdict }) => `add rule ${chain} ${destination(entries)} ${verdict}`),
    `add element ${table} rules { "${slot.link}" : jump ${chainOf(slot)} }`,
  ]
}

function ruleRemoval(table: string, slot: Slot): string[] {
  const chain = `${table} ${chainOf(slot)}`
  return [
    `delete element ${table} rules { "${slot.link}" }`,
    `flush chain ${chain}`,
    `delete chain ${chain}`,
  ]
}

function leadLines(table: string, slot: Slot, { allowNames = [] }: NetworkRules): string[] {
  return [
    `add element ${table} led { "${slot.link}" : goto to_egress }`,
    ...(allowNames.length > 0
      ? [`add element ${table} named { "${slot.link}" : goto to_names }`]
      : []),
  ]
}

/** Adds each element before it deletes it: deleting a missing element fails, adding an existing one does nothing. */
function leadRemoval(table: string, slot: Slot): string[] {
  const [led, named] = [`led { "${slot.link}"`, `named { "${slot.link}"`]
  return [
    `add element ${table} ${led} : goto to_egress }`,
    `delete element ${table} ${led} }`,
    `add element ${table} ${named} : goto to_names }`,
    `delete element ${table} ${named} }`,
  ]
}

/** Returns a packet mark that other software on the host is unlikely to use. */
function egressMark({ tag }: Instance): number {
  return 0xa00_00000 + Number.parseInt(tag, 16)
}

function doorLines(table: string, linkPrefix: string, mark: number, ports: EgressPorts): string[] {
  const ours = `iifname "${linkPrefix}*"`
  const { port, namePort } = ports
  const syn = 'tcp flags & (fin | syn | rst | ack) == syn'
  const toPort = `tproxy ip to 127.0.0.1:${port} meta mark set ${mark}`
  return [
    ...['doors', 'to_egress', 'to_names'].map((chain) => `flush chain ${table} ${chain}`),
    `add rule ${table} doors ${ours} meta mark ${mark} accept`,
    `add rule ${table} doors ${ours} udp dport ${namePort} ${tooMany('questions')} drop`,
    `add rule ${table} doors ${ours} udp dport ${namePort} ct status dnat accept`,
    `add rule ${table} doors udp dport ${namePort} drop`,
    `add rule ${table} doors ${ours} ct status dnat drop`,
    `add rule ${table} to_egress ip daddr @closed return`,
    `add rule ${table} to_egress fib daddr type local return`,
    `add rule ${table} to_egress ${syn} ${tooMany('calls')} drop`,
    // The tproxy rules do nothing while the egress process is down, and the packet continues unmarked. The last rule
    // covers connections that the kernel answered with SYN cookies: it has no socket for them.
    `add rule ${table} to_egress ${syn} ${toPort} ct mark set ${mark} accept`,
    `add rule ${table} to_egress socket transparent 1 meta mark set ${mark} accept`,
    `add rule ${table} to_egress meta l4proto tcp ct mark ${mark} ${toPort} accept`,
    `add rule ${table} to_names udp dport 53 redirect to :${namePort}`,
  ]
}

/** Limits the rate per sandbox: one egress process serves all. */
function tooMany(set: 'calls' | 'questions'): string {
  return `add @${set} { iifname limit rate over 500/second burst 500 packets }`
}

function forEgress(
  slots: readonly Slot[],
  rules: ReadonlyMap<number, NetworkRules> | undefined,
): Map<string, NetworkRules> {
  const found = slots.flatMap(({ number, sandboxAddress }) => {
    const own = rules?.get(number)
    return own && needsEgressProxy(own) ? [[sandboxAddress, own] as const] : []
  })
  return new Map(found)
}

/** Matches the address that the sandbox connected to, for packets in both directions. */
function destination(entries: readonly string[]): string {
  const ranges = toRanges(entries)
  if (isEverything(ranges)) return ''
  return `ct original ip daddr { ${ranges.map(formatRange).join(', ')} }`
}

function tableText(table: string, linkPrefix: string, subnet: string): string {
  const ours = `"${linkPrefix}*"`
  return `
table ${table} {
  set slots { type ifname . ipv4_addr; }
  map rules { type ifname : verdict; }
  map led { type ifname : verdict; }
  map named { type ifname : verdict; }
  set calls { type ifname; flags dynamic; size 65536; }
  set questions { type ifname; flags dynamic; size 65536; }
  set closed { type ipv4_addr; flags interval; elements = { ${closedRanges.join(', ')} } }

  chain arrival {
    type filter hook prerouting priority raw; policy accept;
    iifname ${ours} jump genuine
  }
  chain genuine {
    meta nfproto != ipv4 drop
    iifname . ip saddr != @slots drop
  }
  chain begun {
    type filter hook prerouting priority mangle; policy accept;
    iifname ${ours} meta l4proto tcp iifname vmap @led
  }
  chain to_egress {
  }
  chain asking {
    type nat hook prerouting priority dstnat; policy accept;
    iifname ${ours} meta l4proto udp iifname vmap @named
  }
  chain to_names {
  }
  chain doors {
  }
  chain to_host {
    type filter hook input priority filter - 5; policy accept;
    jump doors
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
    ct state established,related goto answers
    drop
  }
  chain answers {
    oifname vmap @rules
  }
  chain refusal {
    meta l4proto tcp reject with tcp reset
    drop
  }
  chain leaving {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${subnet} oifname != ${ours} masquerade
  }
}`
}
