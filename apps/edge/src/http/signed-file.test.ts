import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import type { FindSigner } from '../domain/signed-file.ts'
import { startTestEdge } from '../sim/test-edge.ts'

async function setup(t: TestContext, findSigner?: FindSigner) {
  const testEdge = await startTestEdge({}, findSigner && { findSigner })
  t.after(() => testEdge.close())
  return testEdge
}

test('a signed URL reaches envd of the sandbox that signed it, unchanged', async (t) => {
  const asked: unknown[] = []
  const { url, node } = await setup(t, async (file) => {
    asked.push(file)
    return 'abc'
  })
  const envd = createServer((req, res) => void res.end(`${req.method} ${req.url}`))
  await new Promise<void>((resolve) => envd.listen(49_983, '127.93.11.7', resolve))
  t.after(() => envd.close())
  node.start('abc', '127.93.11.7')
  const target = '/files?path=%2Fa&signature=v1_x&signature_expiration=17'
  const reply = await fetch(`${url}${target}`, { method: 'POST', body: 'content' })
  assert.equal(await reply.text(), `POST ${target}`)
  assert.deepEqual(asked, [
    { path: '/a', username: '', operation: 'write', signature: 'v1_x', expiration: '17' },
  ])
})

const outcomes: [string, FindSigner | undefined, number, RegExp][] = [
  ['with an unknown signature', async () => undefined, 401, /No running sandbox has signed/],
  ['of a sandbox that is gone', async () => 'gone', 502, /The sandbox was not found/],
  [
    'above the rate limit of lookups',
    async () => {
      throw new Fault('exhausted', 'too_many_signatures', 'x')
    },
    429,
    /Try again/,
  ],
  ['without a signature lookup', undefined, 401, /No running sandbox has signed/],
]

for (const [what, findSigner, status, message] of outcomes) {
  test(`a signed URL ${what} is answered with ${status}`, async (t) => {
    const { url } = await setup(t, findSigner)
    const reply = await fetch(`${url}/files?signature=v1_x`)
    const body = await reply.text()
    assert.deepEqual([reply.status, JSON.parse(body).code], [status, status])
    assert.match(body, message)
  })
}
