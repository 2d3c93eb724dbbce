import { dirname, join } from 'node:path'
import type { Runner } from '@atoll/kit/run'
import { tablePrefix } from '../domain/host/installation.ts'
import type { Installation } from '../domain/host/installation.ts'
import type { NetworkRules } from '@atoll/contracts/network/rules'
import type { NetworkConnection } from '../domain/network/connections.ts'
import type { Slot } from '../domain/network/slot.ts'
import type { Egress, EgressPorts } from './egress.ts'
import { createForwarding } from './forwarding.ts'
import { createMarkedRoute } from './marked-route.ts'
import { egressLines, egressMark, tableText } from './nft-rules.ts'
import { createConnectionRecords } from './connection-records.ts'
import { createNft } from './nft.ts'
import { createRecordRemoval } from './record-removal.ts'
import { createSlotRules } from './slot-rules.ts'

/**
 * Filters traffic between a sandbox, the host and the internet. nftables looks up the rules of a sandbox by interface
 * name, so the cost per packet does not grow with the number of sandboxes. Threats: a sandbox may send any packet with
 * any source address. Packets whose source is not the address of the sandbox's slot are dropped first.
 *
 * Blocked TCP connections get a reset: a pending connection would hang and keep gVisor from pausing the sandbox.
 * Packets that belong to no connection are dropped silently: a reset could end a healthy connection.
 *
 * The rules are checked for every packet of a connection that the sandbox opened, in both directions. New rules
 * therefore apply to open connections too.
 *
 * When the rules contain domain names, a proxy or headers, TCP connections are redirected to the egress process; with
 * domain names, DNS queries too. While the egress process is down, address rules still apply, and no
 * connection bypasses a proxy.
 */
export interface Firewall {
  /** Replaces the whole table atomically, with exactly these slots. The keys of `rules` are slot numbers. */
  install(slots: readonly Slot[], rules?: ReadonlyMap<number, NetworkRules>): Promise<void>
  /** Allows a slot to send within its rules. Must be called before the veth pair exists. */
  addSlot(slot: Slot, rules?: NetworkRules): Promise<void>
  /**
   * Replaces the rules of an added slot atomically; undefined removes them. The rules are in force when the promise
   * resolves. Callers must not run two calls for one slot at the same time.
   */
  setRules(slot: Slot, rules: NetworkRules | undefined): Promise<void>
  /** Forgets the connections of a slot that were counted so far. */
  forgetConnections(slot: Slot): Promise<void>
  /** Blocks all traffic of a slot and removes its rules. Its connections are forgotten a little later. */
  removeSlot(slot: Slot): Promise<void>
  /** Redirects connections to this egress process from now on. */
  redirectTo(ports: EgressPorts): Promise<void>
  /** Returns the connections of a slot, as counted by the firewall in the last half hour and by the egress process. */
  connections(slot: Slot): Promise<readonly NetworkConnection[]>
  /**
   * Returns a function from a slot to the time of its last denial since `ms`, by the firewall or the egress process.
   * Reads once, however many slots there are.
   */
  deniedSince(ms: number): Promise<(slot: Slot) => number | undefined>
  /** Ends work in the background. The rules stay in force. */
  close(): Promise<void>
  uninstall(): Promise<void>
}

export function createFirewall(
  installation: Installation,
  subnet: string,
  runner: Runner,
  egress: Pick<Egress, 'setAll' | 'set' | 'stop' | 'decisions' | 'deniedSince'>,
  onError: (error: unknown) => void = () => {},
): Firewall {
  const table = `inet ${installation.nftTable}`
  const mark = egressMark(installation)
  const route = createMarkedRoute(mark, runner)
  const nft = createNft(runner)
  const records = createConnectionRecords((set) => nft.listSet(table, set), Date.now)
  const removal = createRecordRemoval(nft, table, onError)
  const slotRules = createSlotRules(table, egress)
  const redirection = (to: EgressPorts) => egressLines(table, installation.linkPrefix, mark, to)
  let ports: EgressPorts | undefined
  let isInstalled = false
  const forwarding = createForwarding({
    setting: '/proc/sys/net/ipv4/ip_forward',
    saved: join(dirname(installation.runDir), 'ip_forward'),
    isInUse: async () => (await nft.listTables()).includes(`inet ${tablePrefix}`),
  })
  const element = (slot: Slot) =>
    `element ${table} slots { "${slot.link}" . ${slot.sandboxAddress} }`

  return {
    async install(slots, rules) {
      const tableRules = tableText(table, installation.linkPrefix, subnet)
      isInstalled = false
      await slotRules.reset(slots, rules)
      const added = slots.flatMap((slot) => [
        ...slotRules.script(slot, rules?.get(slot.number)),
        `add ${element(slot)}`,
      ])
      const redirectedPorts = ports
      const redirect = redirectedPorts ? redirection(redirectedPorts) : []
      const replaced = [`table ${table}`, `delete table ${table}`, tableRules]
      await nft.run([...replaced, ...redirect, ...added])
      isInstalled = true
      // The egress process may have been replaced while nft ran.
      if (ports && ports !== redirectedPorts) await nft.run(redirection(ports))
      await forwarding.enable()
    },

    async addSlot(slot, rules) {
      await removal.finish(slot.link)
      const change = () => nft.run([...slotRules.script(slot, rules), `add ${element(slot)}`])
      await slotRules.withEgress(slot, rules, change)
    },

    async setRules(slot, rules) {
      if (slotRules.areInForce(slot, rules)) return
      await slotRules.withEgress(slot, rules, () => nft.run(slotRules.script(slot, rules)))
      slotRules.confirm(slot, rules)
    },

    forgetConnections: ({ link }) => removal.remove(link),

    async removeSlot(slot) {
      await nft.remove([`delete ${element(slot)}`])
      await slotRules.remove(slot, nft.remove)
      removal.schedule(slot.link)
    },

    async redirectTo(next) {
      ports = next
      await route.add()
      if (isInstalled) await nft.run(redirection(next))
    },

    async connections(slot) {
      const [all, decided] = await Promise.all([records(), egress.decisions(slot.sandboxAddress)])
      return [...(all.get(slot.link) ?? []), ...decided]
    },

    async deniedSince(ms) {
      const [all, decided] = await Promise.all([records(), egress.deniedSince(ms)])
      return ({ link, sandboxAddress }) => {
        const counted = (all.get(link) ?? [])
          .filter(({ verdict, lastMs }) => verdict === 'denied' && lastMs >= ms)
          .map(({ lastMs }) => lastMs)
        const last = Math.max(0, decided.get(sandboxAddress) ?? 0, ...counted)
        return last > 0 ? last : undefined
      }
    },

    close: () => removal.stop(),

    async uninstall() {
      await removal.stop()
      await nft.run([`table ${table}`, `delete table ${table}`])
      await egress.stop()
      await route.remove()
      await forwarding.release()
    },
  }
}
