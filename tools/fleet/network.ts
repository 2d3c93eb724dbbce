/**
 * Network of a rig: a bridge on this machine, and a network namespace for each part that is to have a machine of its own. A
 * namespace reaches the others, this machine, and through it the internet.
 */
import { run, tryRun } from '@atoll/kit/run'

export interface Machine {
  readonly name: string
  readonly namespace: string
  readonly address: string
  /** Program and arguments that run the rest of a command line on this machine. */
  readonly enter: readonly string[]
  /** Drops all packets between this machine and these addresses, without an error for either side. */
  cut(addresses: readonly string[]): Promise<void>
  heal(): Promise<void>
}

export interface RigNetwork {
  /** Address of the host on the bridge. */
  readonly hostAddress: string
  addMachine(name: string): Promise<Machine>
}

const rangePrefix = '198.18'

/** `id`: five hexadecimal digits that no other rig on this machine has. */
export async function openNetwork(id: string): Promise<RigNetwork> {
  const bridge = bridgeOf(id)
  const subnet = `${rangePrefix}.${parseInt(id.slice(-2), 16)}`
  const hostAddress = `${subnet}.1`
  await run('ip', ['link', 'add', bridge, 'type', 'bridge'])
  await run('ip', ['address', 'add', `${hostAddress}/24`, 'dev', bridge])
  await run('ip', ['link', 'set', bridge, 'up'])
  await shareInternet(id, `${subnet}.0/24`)
  let machines = 0
  return {
    hostAddress,
    async addMachine(name) {
      machines += 1
      const address = `${subnet}.${10 + machines}`
      const namespace = `${namespacePrefix(id)}${name}`
      await run('ip', ['netns', 'add', namespace])
      const link = `${linkPrefix(id)}${machines}`
      const veth = ['link', 'add', link, 'type', 'veth']
      await run('ip', [...veth, 'peer', 'name', 'uplink', 'netns', namespace])
      await run('ip', ['link', 'set', link, 'master', bridge, 'up'])
      const inside = (...args: string[]) => run('ip', ['-n', namespace, ...args])
      await inside('link', 'set', 'lo', 'up')
      await inside('address', 'add', `${address}/24`, 'dev', 'uplink')
      await inside('link', 'set', 'uplink', 'up')
      await inside('route', 'add', 'default', 'via', hostAddress)
      return createMachine(name, namespace, address)
    },
  }
}

function createMachine(name: string, namespace: string, address: string): Machine {
  // `ip netns exec` would replace /sys, and hide the control groups.
  const enter = ['nsenter', `--net=/run/netns/${namespace}`]
  const nft = (input: string) => run('nsenter', [...enter.slice(1), 'nft', '-f', '-'], { input })
  const remove = 'table inet atoll_rig\ndelete table inet atoll_rig\n'
  return {
    ...{ name, namespace, address, enter },
    async cut(addresses) {
      const list = addresses.join(', ')
      // Before the rules of the node, which accept packets.
      await nft(`${remove}table inet atoll_rig {
  chain input { type filter hook input priority -400; ip saddr { ${list} } drop; }
  chain output { type filter hook output priority -400; ip daddr { ${list} } drop; }
}`)
    },
    heal: async () => void (await nft(remove)),
  }
}

/** Masquerades the machines, as a router does. Sandboxes may need the internet. */
async function shareInternet(id: string, subnet: string): Promise<void> {
  await run('sysctl', ['--quiet', '--write', 'net.ipv4.ip_forward=1'])
  const input = `table ip ${tableOf(id)} {
  chain postrouting {
    type nat hook postrouting priority srcnat
    ip saddr ${subnet} oifname != "${bridgeOf(id)}" masquerade
  }
}`
  await run('nft', ['-f', '-'], { input })
}

/** Removes what a rig left. Its processes must have ended. */
export async function removeNetwork(id: string): Promise<void> {
  for (const namespace of await listNamespaces(id)) await run('ip', ['netns', 'delete', namespace])
  // Absent if the rig ended while it was starting, or after a reboot.
  await tryRun('ip', ['link', 'delete', bridgeOf(id)])
  await tryRun('nft', ['delete', 'table', 'ip', tableOf(id)])
}

export async function listNamespaces(id: string): Promise<string[]> {
  const lines = (await run('ip', ['netns', 'list'])).split('\n')
  const names = lines.map((line) => line.split(' ')[0] ?? '')
  return names.filter((name) => name.startsWith(namespacePrefix(id)))
}

/** Interface names have at most 15 characters. */
function bridgeOf(id: string): string {
  return `arig${id}`
}

function linkPrefix(id: string): string {
  return `arig${id}-`
}

function namespacePrefix(id: string): string {
  return `atoll-rig-${id}-`
}

function tableOf(id: string): string {
  return `atoll_rig_${id}`
}
