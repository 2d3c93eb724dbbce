import { dirname, join } from 'node:path'
import { run, tryRun } from '@atoll/kit/run'
import { tablePrefix } from '../domain/instance.ts'
import type { Instance } from '../domain/instance.ts'
import type { Slot } from '../domain/slot.ts'
import { createForwarding } from './forwarding.ts'

/**
 * What may pass between a sandbox, the host and the world. One table of fixed size; a sandbox is one element of a
 * set. Threats: a sandbox may send any packet with any address. What does not carry the address of its own slot is
 * dropped before anything looks at it.
 */
export interface Firewall {
  /** Puts the whole table in force at once, for exactly these slots. */
  install(slots: readonly Slot[]): Promise<void>
  admit(slot: Slot): Promise<void>
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

export function createFirewall(instance: Instance, subnet: string): Firewall {
  const table = `inet ${instance.nftTable}`
  const forwarding = createForwarding({
    setting: '/proc/sys/net/ipv4/ip_forward',
    saved: join(dirname(instance.runDir), 'ip_forward'),
    isInUse: async () => (await run('nft', ['list', 'tables'])).includes(`inet ${tablePrefix}`),
  })
  const element = (slot: Slot) =>
    `element ${table} slots { "${slot.link}" . ${slot.sandboxAddress} }`
  return {
    async install(slots) {
      const rules = tableText(table, instance.linkPrefix, subnet)
      const elements = slots.map((slot) => `add ${element(slot)}`)
      await nft([`table ${table}`, `delete table ${table}`, rules, ...elements].join('\n'))
      await forwarding.enable()
    },

    admit: (slot) => nft(`add ${element(slot)}`),

    async expel(slot) {
      const result = await tryRun('nft', ['delete', ...element(slot).split(' ')])
      if (result.code !== 0 && !/No such file/.test(result.stderr)) {
        throw new Error(`nft delete ${element(slot)}: ${result.stderr.trim()}`)
      }
    },

    async uninstall() {
      await nft(`table ${table}\ndelete table ${table}`)
      await forwarding.release()
    },
  }
}

function tableText(table: string, linkPrefix: string, subnet: string): string {
  const ours = `"${linkPrefix}*"`
  return `
table ${table} {
  set slots { type ifname . ipv4_addr; }
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
    iifname ${ours} drop
  }
  chain through {
    type filter hook forward priority filter - 5; policy accept;
    iifname ${ours} jump outgoing
    oifname ${ours} jump incoming
  }
  chain outgoing {
    oifname ${ours} drop
    ct state established,related accept
    ip daddr @closed drop
  }
  chain incoming {
    ct state established,related accept
    drop
  }
  chain leaving {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${subnet} oifname != ${ours} masquerade
  }
}`
}

async function nft(script: string): Promise<void> {
  await run('nft', ['-f', '-'], { input: script })
}
