import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseHalfOpen, unreachable } from './half-open.ts'

const connection = { from: '10.213.0.2', fromPort: 40112, to: '93.184.216.34', toPort: 443 }
const asked = 'src=10.213.0.2 dst=93.184.216.34 sport=40112 dport=443'
const answered = 'src=93.184.216.34 dst=11.0.0.1 sport=443 dport=40112 mark=0 zone=0 use=2'

test('a connection without an answer is found in the table of connections', () => {
  const line = `ipv4     2 tcp      6 118 SYN_SENT ${asked} [UNREPLIED] ${answered}`
  assert.deepEqual(parseHalfOpen(line), connection)
})

const others = [
  `ipv4     2 tcp      6 431999 ESTABLISHED ${asked} ${answered} [ASSURED]`,
  `ipv4     2 udp      17 29 ${asked} [UNREPLIED] ${answered}`,
  `ipv6     10 tcp     6 118 SYN_SENT src=::1 dst=::1 sport=1 dport=2 [UNREPLIED] ${answered}`,
  '',
]
for (const line of others) {
  test(`nothing else is: ${line.slice(0, 40)}`, () => {
    assert.equal(parseHalfOpen(line), undefined)
  })
}

/** Returns the one's complement sum, all ones when the checksum is right (RFC 1071). */
function sumOf(bytes: Buffer): number {
  let sum = 0
  for (let at = 0; at < bytes.length; at += 2) sum += bytes.readUInt16BE(at)
  return (sum & 0xffff) + (sum >>> 16)
}

test('the ICMP message contains the whole head of the first packet', () => {
  const message = unreachable(connection)
  assert.deepEqual([...message.subarray(0, 2)], [3, 1])
  assert.equal(sumOf(message), 0xffff)
  const about = message.subarray(8)
  assert.equal(sumOf(about.subarray(0, 20)), 0xffff)
  assert.deepEqual([...about.subarray(12, 20)], [10, 213, 0, 2, 93, 184, 216, 34])
  assert.deepEqual([about.readUInt16BE(20), about.readUInt16BE(22)], [40112, 443])
})
