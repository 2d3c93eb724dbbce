import { parseSubnet, toSlot } from '../domain/network/slot.ts'
import type { Namespace } from './netns.ts'

/** Connects a host and the world by a veth pair. The world gets 11.0.0.2 and all `addresses`. */
export async function connectWorld(
  host: Namespace,
  world: Namespace,
  addresses: readonly string[],
): Promise<void> {
  await host.ip(
    `link add world type veth peer name eth0 netns ${world.name}`,
    'addr add 11.0.0.1/24 dev world',
    'link set world up',
    'link set lo up',
    ...addresses.map((address) => `route add ${address} via 11.0.0.2`),
  )
  await world.ip(
    'addr add 11.0.0.2/24 dev eth0',
    'link set eth0 up',
    'link set lo up',
    ...addresses.map((address) => `addr add ${address}/32 dev lo`),
  )
}

/** Creates the veth pair of a slot, like the node does. */
export async function connectSlot(
  host: Namespace,
  sandbox: Namespace,
  place: { readonly subnet: string; readonly linkPrefix: string; readonly number: number },
): Promise<void> {
  const { subnet, linkPrefix, number } = place
  const { link, hostAddress, sandboxAddress } = toSlot(parseSubnet(subnet), linkPrefix, number)
  await host.ip(
    `link add ${link} type veth peer name eth0 netns ${sandbox.name}`,
    `addr add ${hostAddress}/30 dev ${link}`,
    `link set ${link} up`,
  )
  await sandbox.ip(
    `addr add ${sandboxAddress}/30 dev eth0`,
    'link set eth0 up',
    'link set lo up',
    `route add default via ${hostAddress}`,
  )
}
