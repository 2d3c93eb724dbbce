import { BlockList, isIP } from 'node:net'

/** Addresses and networks, IPv4 and IPv6. */
export interface AddressList {
  has(address: string): boolean
}

/** Parses comma-separated addresses and CIDR ranges. Returns the first invalid entry instead, if there is one. */
export function parseAddressList(text: string): AddressList | { readonly invalid: string } {
  const list = new BlockList()
  const entries = text.split(',').map((entry) => entry.trim())
  for (const entry of entries.filter((part) => part !== '')) {
    const [address = '', bits, ...rest] = entry.split('/')
    const version = isIP(address)
    const most = version === 4 ? 32 : 128
    const prefix = bits === undefined ? most : Number(/^\d{1,3}$/.test(bits) ? bits : NaN)
    if (version === 0 || rest.length > 0 || !(prefix <= most)) return { invalid: entry }
    list.addSubnet(address, prefix, version === 4 ? 'ipv4' : 'ipv6')
  }
  return {
    has(address) {
      const version = isIP(address)
      return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
    },
  }
}
