import { slotPrefixLength } from '../domain/network/slot.ts'
import type { Slot } from '../domain/network/slot.ts'

/**
 * Builds the call that gives the kernel of a gVisor sandbox its network, as runsc 20240729 sends it. `guest
 * gvisor-network` fills in the hardware address and adds a packet socket.
 */
export function networkCall({ sandboxAddress, hostAddress }: Slot): object {
  return {
    method: 'Network.CreateLinksAndRoutes',
    arg: {
      LoopbackLinks: [loopback],
      FDBasedLinks: [
        {
          Name: slotLink,
          InterfaceIndex: 0,
          MTU: 1500,
          Addresses: [{ Address: sandboxAddress, PrefixLen: slotPrefixLength }],
          Routes: [routeTo(networkOf(sandboxAddress), maskOf(slotPrefixLength, 32))],
          // The packet socket passes segments of this size, with their checksums still to be computed.
          GSOMaxSize: 65_536,
          GVisorGSOEnabled: false,
          GVisorGRO: false,
          TXChecksumOffload: false,
          RXChecksumOffload: true,
          LinkAddress: Buffer.alloc(6).toString('base64'),
          QDisc: queuesPackets,
          Neighbors: null,
          NumChannels: 1,
          ProcessorsPerChannel: 0,
        },
      ],
      XDPLinks: null,
      Defaultv4Gateway: {
        Route: { ...routeTo('0.0.0.0', maskOf(0, 32)), Gateway: hostAddress },
        Name: slotLink,
      },
      Defaultv6Gateway: {
        Route: { Destination: { IP: '', Mask: null }, Gateway: '' },
        Name: '',
      },
      PCAP: false,
      LogPackets: false,
      NATBlob: false,
      // Open outside connections must not block a pause; they are closed.
      DisconnectOk: true,
    },
  }
}

/** Name of the sandbox's end of the veth pair of a slot. */
export const slotLink = 'eth0'

/** The queueing discipline that runsc uses by default: first in, first out. */
const queuesPackets = 1

const loopback = {
  Name: 'lo',
  Addresses: [
    { Address: '127.0.0.1', PrefixLen: 8 },
    { Address: '::1', PrefixLen: 128 },
  ],
  Routes: [routeTo('127.0.0.0', maskOf(8, 32)), routeTo('::1', maskOf(128, 128))],
  GVisorGRO: false,
}

function routeTo(address: string, mask: string) {
  return { Destination: { IP: address, Mask: mask }, Gateway: '' }
}

/** Returns a network mask as Go encodes bytes in JSON. */
function maskOf(ones: number, bits: number): string {
  const bytes = Array.from({ length: bits / 8 }, (_, index) => {
    const inByte = Math.min(Math.max(ones - index * 8, 0), 8)
    return 256 - 2 ** (8 - inByte)
  })
  return Buffer.from(bytes).toString('base64')
}

function networkOf(address: string): string {
  const [first, second, third, last = ''] = address.split('.')
  const size = 2 ** (32 - slotPrefixLength)
  return [first, second, third, Math.floor(Number(last) / size) * size].join('.')
}
