import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSkopeoError } from './skopeo-error.ts'

function read(message: string): string {
  const quoted = message.replaceAll('"', String.raw`\"`)
  return readSkopeoError(`time="2026-01-02T03:04:05Z" level=fatal msg="${quoted}"\n`)
}

const cases: ReadonlyArray<readonly [name: string, message: string, shown: string]> = [
  [
    'the reason of a registry',
    'Error parsing image name "docker://ghcr.io/a/b": reading manifest latest in ghcr.io/a/b: denied',
    'reading manifest latest in ghcr.io/a/b: denied',
  ],
  [
    'a URL, but not the name server',
    'pinging container registry r.example: Get "https://r.example/v2/": dial tcp: lookup r.example on 10.0.0.2:53: no such host',
    'pinging container registry r.example: Get "https://r.example/v2/": dial tcp: lookup r.example: no such host',
  ],
  [
    'no addresses of sockets',
    'lookup r.example on [fd00::2]:53: read udp 10.0.0.5:4021->10.0.0.2:53: i/o timeout',
    'lookup r.example: read udp: i/o timeout',
  ],
  [
    'no address of a proxy',
    'proxyconnect tcp: dial tcp 10.9.8.7:3128: connect: connection refused',
    'proxyconnect tcp: dial tcp: connect: connection refused',
  ],
  [
    'no path of the machine',
    'creating temporary file: open /var/lib/atoll/scratch/x/image123: no space left on device',
    'creating temporary file: open …: no space left on device',
  ],
  [
    'a path of an image',
    'reading docker.io/run/var/tmp: denied',
    'reading docker.io/run/var/tmp: denied',
  ],
]

for (const [name, message, shown] of cases) {
  test(`an error of skopeo shows ${name}`, () => assert.equal(read(message), shown))
}

test('output without a message gives no reason', () => assert.equal(readSkopeoError('killed'), ''))
