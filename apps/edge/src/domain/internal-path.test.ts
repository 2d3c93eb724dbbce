import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureCpuMs } from '@atoll/kit/cpu-time'
import { internalPathOf } from './internal-path.ts'

const disguises: [string, string][] = [
  ['plain', '/init'],
  ['other than /init', '/fsthaw'],
  ['for logs', '/logs?after=0'],
  ['for the preparation of a checkpoint', '/prepare'],
  ['for a trusted certificate authority', '/trust'],
  ['with a query', '/init?x=1'],
  ['with a fragment', '/init#x'],
  ['with a trailing slash', '/init/'],
  ['with two slashes', '//init'],
  ['with many slashes', '////init//'],
  ['with a dot segment', '/./init'],
  ['with a parent segment', '/x/../init'],
  ['with a parent of the root', '/../../init'],
  ['with an encoded letter', '/%69nit'],
  ['with an encoded slash', '/x%2f..%2finit'],
  ['with encoded dots', '/%2e%2e/init'],
  ['encoded twice', '/%2569nit'],
  ['with an encoded query mark', '/init%3fx'],
  ['with backslashes', '/\\init'],
  ['with a backslash parent', '/x\\..\\init'],
  ['with an encoded tab', '/in%09it'],
  ['with an encoded null', '/init%00'],
  ['as the path of another host', '//host/init'],
  ['as the path of another host behind backslashes', '\\\\host\\init'],
  ['in capitals', '/INIT'],
]

for (const [name, path] of disguises) {
  test(`an internal path is detected: ${name}`, () =>
    assert.notEqual(internalPathOf(path), undefined))
}

for (const path of ['/', '/files', '/init.txt', '/initial', '/x/init', '/?/init', '/x?/../init']) {
  test(`${path} passes`, () => assert.equal(internalPathOf(path), undefined))
}

test('a long path of nested escapes takes little CPU time', async () => {
  const path = `/%${'25'.repeat(8000)}69nit`
  assert.ok((await measureCpuMs(() => internalPathOf(path))) < 500)
})
