import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tryRun } from '@atoll/kit/run'

/** Runs a shell script in a new network namespace. */
const inNamespace = (script: string) => tryRun('unshare', ['--net', 'sh', '-c', script])

test('iproute2 says "File exists" for a rule that exists (marked-route.ts)', async () => {
  const add = 'ip rule add fwmark 5 lookup 5 priority 12000'
  const { code, stderr } = await inNamespace(`${add} && ${add}`)
  assert.notEqual(code, 0)
  assert.match(stderr, /File exists/)
})

test('nft says "No such file" when it deletes what does not exist (firewall.ts)', async () => {
  const { code, stderr } = await inNamespace('nft delete table inet absent')
  assert.notEqual(code, 0)
  assert.match(stderr, /No such file/)
})
