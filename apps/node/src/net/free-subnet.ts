import { networkInterfaces } from 'node:os'
import { Fault } from '@atoll/kit/fault'
import ipaddr from 'ipaddr.js'

/** Throws when an interface of this machine, other than the installation's own, has an address in the subnet. */
export function checkSubnetIsFree(cidr: string, linkPrefix: string): void {
  const subnet = ipaddr.IPv4.parseCIDR(cidr)
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (name.startsWith(linkPrefix)) continue
    const taken = addresses?.find(
      ({ family, address }) => family === 'IPv4' && ipaddr.IPv4.parse(address).match(subnet),
    )
    if (taken) {
      throw new Fault(
        'conflict',
        'subnet_taken',
        `${name} has the address ${taken.address}, which lies in the sandboxes' subnet ${cidr}: set ATOLL_SUBNET to a private network of 65,536 addresses that this machine does not use, such as 10.214.0.0/16`,
      )
    }
  }
}
