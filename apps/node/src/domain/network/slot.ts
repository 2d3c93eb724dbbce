import { Fault } from '@atoll/kit/fault'

/** A network place for one sandbox: four addresses of the installation's subnet, and names derived from its number. */
export interface Slot {
  readonly number: number
  readonly hostAddress: string
  readonly sandboxAddress: string
  /** Host end of the veth pair. */
  readonly link: string
  readonly namespace: string
}

export interface Subnet {
  readonly cidr: string
  readonly first: number
  readonly slots: number
}

const addressesPerSlot = 4
const prefixLength = 30
/** Limited by the length of an interface name, after the installation's prefix. */
const maxSlots = 99_999

export const slotPrefixLength = prefixLength

export function parseSubnet(cidr: string): Subnet {
  const [address = '', bits = ''] = cidr.split('/')
  const size = 2 ** (32 - Number(bits))
  const first = toNumber(address)
  if (size < addressesPerSlot || first % size !== 0) {
    throw new Fault(
      'invalid',
      'bad_subnet',
      `${cidr} must be an IPv4 network of at least four addresses, such as 10.0.0.0/16`,
    )
  }
  return { cidr, first, slots: Math.min(size / addressesPerSlot, maxSlots) }
}

export function toSlot(subnet: Subnet, linkPrefix: string, number: number): Slot {
  const base = subnet.first + number * addressesPerSlot
  const link = `${linkPrefix}${number}`
  return {
    number,
    hostAddress: toAddress(base + 1),
    sandboxAddress: toAddress(base + 2),
    link,
    namespace: link,
  }
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

function toAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
}
