import { writeFile } from 'node:fs/promises'
import { slotPrefixLength } from '../domain/network/slot.ts'
import type { Slot } from '../domain/network/slot.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'

/** Network namespaces with one veth pair each. A slot is used once: a runtime may remove its addresses. */
export interface SlotMaker {
  make(slot: Slot, runtime: Runtime['name']): Promise<void>
  /** Removes namespace and veth pair. Succeeds when neither exists. */
  remove(slot: Slot): Promise<void>
  /** Lists all namespaces and interfaces with the prefix of this installation. */
  list(): Promise<string[]>
}

export function createSlotMaker(parts: {
  readonly namespace: MountNamespace
  readonly linkPrefix: string
  /** Unmasked /proc with the network settings, as seen inside the mount namespace. */
  readonly procDir: string
}): SlotMaker {
  const { namespace, linkPrefix, procDir } = parts
  const listNames = async () => {
    const [namespaces, links] = await Promise.all([
      namespace.run('ls', ['/run/netns']),
      namespace.run('ip', ['-o', 'link', 'show']),
    ])
    const linkNames = [...links.matchAll(/^\d+: ([^:@]+)[:@]/gm)].map((match) => match[1] ?? '')
    return [...new Set([...namespaces.split('\n'), ...linkNames])].filter((name) =>
      name.startsWith(linkPrefix),
    )
  }

  return {
    async make(slot, runtime) {
      await namespace.run('ip', ['netns', 'add', slot.namespace])
      await namespace.run('ip', ['-batch', '-'], { input: hostEnd(slot) })
      // Sandboxes have IPv4 only, so IPv6 needs no firewall rules.
      await writeFile(`/proc/sys/net/ipv6/conf/${slot.link}/disable_ipv6`, '1').catch(ignoreAbsent)
      await namespace.run('ip', ['-n', slot.namespace, '-batch', '-'], { input: sandboxEnd(slot) })
      // The kernel of a gVisor sandbox has settings of its own.
      if (runtime === 'gvisor') return
      // Not `ip netns exec`, which copies the mount namespace with the mounts of all sandboxes.
      const enter = [`--net=/run/netns/${slot.namespace}`, '--']
      await namespace.run('nsenter', [...enter, 'sh', '-euc', settings, 'set', procDir])
    },

    async remove(slot) {
      const [removed] = await Promise.all([
        namespace.tryRun('ip', ['netns', 'delete', slot.namespace]),
        namespace.tryRun('ip', ['link', 'delete', slot.link]),
      ])
      if (removed.code !== 0 && (await listNames()).includes(slot.namespace)) {
        throw new Error(`ip netns delete ${slot.namespace}: ${removed.stderr.trim()}`)
      }
    },

    list: listNames,
  }
}

/** Opens low ports and ping to all users: root of a runc sandbox does not own the network namespace. */
const settings = `
cd "$1/sys/net/ipv4"
echo 0 > ip_unprivileged_port_start
echo '0 65535' > ping_group_range
`

function hostEnd(slot: Slot): string {
  return [
    `link add ${slot.link} type veth peer name eth0 netns ${slot.namespace}`,
    `addr add ${slot.hostAddress}/${slotPrefixLength} dev ${slot.link}`,
    `link set ${slot.link} up`,
  ].join('\n')
}

function sandboxEnd(slot: Slot): string {
  return [
    `addr add ${slot.sandboxAddress}/${slotPrefixLength} dev eth0`,
    'link set lo up',
    'link set eth0 up',
    `route add default via ${slot.hostAddress}`,
  ].join('\n')
}

function ignoreAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
