import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSubnet, toSlot } from '../domain/network/slot.ts'
import { networkCall } from './gvisor-network.ts'

/** Recorded from `runsc restore` 20240729, with another hardware address and the mask of the default route in 4 bytes. */
const recorded =
  '{"method":"Network.CreateLinksAndRoutes","arg":{"LoopbackLinks":[{"Name":"lo","Addresses":[{"Address":"127.0.0.1","PrefixLen":8},{"Address":"::1","PrefixLen":128}],"Routes":[{"Destination":{"IP":"127.0.0.0","Mask":"/wAAAA=="},"Gateway":""},{"Destination":{"IP":"::1","Mask":"/////////////////////w=="},"Gateway":""}],"GVisorGRO":false}],"FDBasedLinks":[{"Name":"eth0","InterfaceIndex":0,"MTU":1500,"Addresses":[{"Address":"10.99.7.6","PrefixLen":30}],"Routes":[{"Destination":{"IP":"10.99.7.4","Mask":"/////A=="},"Gateway":""}],"GSOMaxSize":65536,"GVisorGSOEnabled":false,"GVisorGRO":false,"TXChecksumOffload":false,"RXChecksumOffload":true,"LinkAddress":"AAAAAAAA","QDisc":1,"Neighbors":null,"NumChannels":1,"ProcessorsPerChannel":0}],"XDPLinks":null,"Defaultv4Gateway":{"Route":{"Destination":{"IP":"0.0.0.0","Mask":"AAAAAA=="},"Gateway":"10.99.7.5"},"Name":"eth0"},"Defaultv6Gateway":{"Route":{"Destination":{"IP":"","Mask":null},"Gateway":""},"Name":""},"PCAP":false,"LogPackets":false,"NATBlob":false,"DisconnectOk":true}}'

test('the kernel of a sandbox gets its network as runsc gives it', () => {
  const slot = toSlot(parseSubnet('10.99.7.0/24'), 'at-', 1)
  assert.deepEqual(networkCall(slot), JSON.parse(recorded))
})
