import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Runner } from '@atoll/kit/run'
import { tablePrefix } from '../domain/instance.ts'
import type { Instance } from '../domain/instance.ts'
import { formatRange, isEverything, toRanges } from '../domain/network-rules.ts'
import type { NetworkRules } from '../domain/network-rules.ts'
import type { Slot } from '../domain/slot.ts'
import { createForwarding } from './forwarding.ts'

/**
 * What may pass between a sandbox, the host and the world. A packet finds the rules of its sandbox by the name of the
 * cable, so that its way is as long with many sandboxes as with few. Threats: a sandbox may send any packet with any
 * address. What does not carry the address of its own slot is dropped before anything looks at it.
 *
 * TCP is refused at once, wherever it may not go. A program that waits for an answer which never comes is told
 * nothing, and keeps its sandbox from being paused under gVisor. A packet that belongs to nothing vanishes: a reset for
 * it could end a connection that is fine.
 *
 * The rules of a sandbox are asked for each packet of what it has begun, in both directions, and not for the first one
 * alone: new rules thereby hold for connections that are open.
 */
export interface Firewall {
  /** Puts the whole table in force at once, for exactly these slots; `rules` by the numbers of those that have some. */
  install(slots: readonly Slot[], rules?: ReadonlyMap<number, NetworkRules>): Promise<void>
  /** Lets a slot send, within these rules. To be called before there is a cable. */
  admit(slot: Slot, rules?: NetworkRules): Promise<void>
  /**
   * Replaces the rules of an admitted slot, in one step; undefined: none. In force when it returns. One call at a time
   * for a slot.
   */
  setRules(slot: Slot, rules: NetworkRules | undefined): Promise<void>
  expel(slot: Slot): Promise<void>
  uninstall(): Promise<void>
}

/** Never reached from a sandbox: this network, private, shared, loopback, link-local (metadata), test, multicast, reserved. */
const closedRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]

export function createFirewall(
  instance: Instance,
  subnet: string,
  { run, tryRun }: Runner,
): Firewall {
  const table = `inet ${instance.nftTable}`
  const forwarding = createForwarding({
    setting: '/proc/sys/net/ipv4/ip_forward',
    saved: join(dirname(instance.runDir), 'ip_forward'),
    isInUse: async () => (await run('nft', ['list', 'tables'])).includes(`inet ${tablePrefix}`),
  })
  const element = (slot: Slot) =>
    `element ${table} slots { "${slot.link}" . ${slot.sandboxAddress} }`
  /** The slots that have a chain of rules; all others do without, as most sandboxes have none. */
  const ruled = new Map<number, NetworkRules | undefined>()

  function ruleScript(slot: Slot, rules: NetworkRules | undefined): string[] {
    const isNeeded = rules !== undefined && rules.allowOut.length + rules.denyOut.length > 0
    if (!isNeeded && !ruled.has(slot.number)) return []
    const script = ruleLines(table, slot, rules)
    ruled.set(slot.number, undefined) // what is in force is not known until it is
    return script
  }

  /** All of it or nothing, at once. */
  async function nft(script: readonly string[]): Promise<void> {
    if (script.length > 0) await run('nft', ['-f', '-'], { input: script.join('\n') })
  }

  /** Succeeds when there is nothing to remove. */
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
      const admitted = slots.flatMap((slot) => [
        ...ruleScript(slot, rules?.get(slot.number)),
        `add ${element(slot)}`,
      ])
      await nft([`table ${table}`, `delete table ${table}`, frame, ...admitted])
      await forwarding.enable()
    },

    async admit(slot, rules) {
      await nft([...ruleScript(slot, rules), `add ${element(slot)}`])
    },

    async setRules(slot, rules) {
      const known = ruled.get(slot.number)
      if (known && isDeepStrictEqual(known, rules)) return
      await nft(ruleScript(slot, rules))
      if (ruled.has(slot.number)) ruled.set(slot.number, rules)
    },

    async expel(slot) {
      await discard([`delete ${element(slot)}`])
      if (!ruled.has(slot.number)) return
      await discard(ruleRemoval(table, slot))
      ruled.delete(slot.number)
    },

    async uninstall() {
      await nft([`table ${table}`, `delete table ${table}`])
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
  return [
    `add chain ${chain}`,
    `flush chain ${chain}`,
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

/** Where the sandbox began the connection to, whichever way a packet of it goes. */
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
  set closed { type ipv4_addr; flags interval; elements = { ${closedRanges.join(', ')} } }

  chain arrival {
    type filter hook prerouting priority raw; policy accept;
    iifname ${ours} jump genuine
  }
  chain genuine {
    meta nfproto != ipv4 drop
    iifname . ip saddr != @slots drop
  }
  chain to_host {
    type filter hook input priority filter - 5; policy accept;
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
