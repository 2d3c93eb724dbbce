import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readListeningPorts } from './listening-ports.ts'
import { portUrl } from './port-url.ts'

test('listening ports are read from the tables of the kernel, without envd', () => {
  const row = (address: string, state = '0A') =>
    `   0: ${address} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000\n`
  const tables = [
    '  sl  local_address rem_address   st\n',
    row('00000000:1F90'),
    row('0100007F:0BB8'),
    row('0100007F:0BB9', '01'),
    row('00000000:C33F'),
    row(`${'0'.repeat(32)}:1F90`),
    row('00000000000000000000000001000000:0BB8'),
    'garbage \x1b[2J\n',
  ].join('')
  assert.deepEqual(readListeningPorts(tables), [
    { port: 3000, addresses: ['127.0.0.1', '::1'] },
    { port: 8080, addresses: ['*'] },
  ])
})

const urls = [
  ['http://127.0.0.1:3000', undefined, 'http://80-iabc.localhost:3000/'],
  ['http://[::1]:3000', undefined, 'http://80-iabc.localhost:3000/'],
  ['http://localhost:3000', undefined, 'http://80-iabc.localhost:3000/'],
  ['https://box.example.com', undefined, 'https://80-iabc.box.example.com/'],
  ['http://10.0.0.1', 'box.example.com:81', 'http://80-iabc.box.example.com:81/'],
] as const

for (const [sandboxUrl, domain, url] of urls) {
  test(`a port behind ${sandboxUrl} has the URL ${url}`, () => {
    assert.equal(portUrl({ sandboxUrl }, { domain }, { sandboxId: 'iabc', port: 80 }), url)
  })
}

test('an address without a domain has no URL of ports', () => {
  const read = () =>
    portUrl({ sandboxUrl: 'http://10.0.0.1' }, { domain: undefined }, { sandboxId: 'i', port: 1 })
  assert.throws(read, /Set ATOLL_DOMAIN/)
})
