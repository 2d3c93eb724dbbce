import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { createFindSigner } from './find-signer.ts'

const file = {
  path: '/home/user/ü.txt',
  username: '',
  operation: 'read',
  expiration: undefined,
} as const

function sign(...parts: readonly string[]): string {
  const digest = createHash('sha256').update(parts.join(':')).digest('base64')
  return `v1_${digest.replaceAll('=', '')}`
}

function setup(count = 1000) {
  const running = Array.from({ length: count }, (_, i) => `i${i}`)
  let storeReads = 0
  const findSigner = createFindSigner({
    store: {
      async listByState(states) {
        storeReads += 1
        assert.deepEqual(states, ['running', 'snapshotting'])
        return running.map((id) => ({ id, state: 'running' as const }))
      },
    },
    tokenOf: (id) => `token of ${id}`,
  })
  return { findSigner, running, storeReads: () => storeReads }
}

test('the sandbox whose token signed the file is found, and cached', async () => {
  const { findSigner, storeReads } = setup()
  const signature = sign(file.path, 'read', '', 'token of i777')
  assert.equal(await findSigner({ ...file, signature }), 'i777')
  assert.equal(await findSigner({ ...file, signature }), 'i777')
  assert.equal(storeReads(), 1)
})

test('the signature covers user, operation and expiration', async () => {
  const { findSigner } = setup(10)
  const signature = sign(file.path, 'write', 'anna', 'token of i3', '1700000000')
  const request = { ...file, operation: 'write', username: 'anna', signature } as const
  assert.equal(await findSigner({ ...request, expiration: '1700000001' }), undefined)
  assert.equal(await findSigner({ ...request, expiration: undefined }), undefined)
  assert.equal(
    await findSigner({ ...request, operation: 'read', expiration: '1700000000' }),
    undefined,
  )
  assert.equal(await findSigner({ ...request, expiration: '1700000000' }), 'i3')
})

test('a signature of an ended sandbox is refused, and a signature of a new sandbox is found', async () => {
  const { findSigner, running } = setup(2)
  running.pop()
  running.push('inew')
  const ended = sign(file.path, 'read', '', 'token of i1')
  assert.equal(await findSigner({ ...file, signature: ended }), undefined)
  const fresh = sign(file.path, 'read', '', 'token of inew')
  assert.equal(await findSigner({ ...file, signature: fresh }), 'inew')
})

test('a malformed signature is refused without reading the store', async () => {
  const { findSigner, storeReads } = setup()
  for (const signature of ['', 'v1_', 'v1_x', `v2_${'a'.repeat(43)}`, `v1_${'a'.repeat(5000)}`]) {
    assert.equal(await findSigner({ ...file, signature }), undefined)
  }
  assert.equal(storeReads(), 0)
})

test('a flood of unknown signatures is refused above the queue limit, and later requests are served', async () => {
  const { findSigner } = setup(10)
  const searches = Array.from({ length: 200 }, (_, i) =>
    findSigner({ ...file, signature: sign('flood', String(i)) }).then(
      () => 'searched',
      ({ kind }: { kind: string }) => kind,
    ),
  )
  const outcomes = await Promise.all(searches)
  assert.equal(outcomes.filter((outcome) => outcome === 'exhausted').length, 136)
  const signature = sign(file.path, 'read', '', 'token of i7')
  assert.equal(await findSigner({ ...file, signature }), 'i7')
})

test('a search after a store failure works', async () => {
  let fails = true
  const findSigner = createFindSigner({
    store: {
      listByState: async () => {
        if (fails) throw new Error('no store')
        return [{ id: 'i1', state: 'running' }]
      },
    },
    tokenOf: (id) => `token of ${id}`,
  })
  const signature = sign(file.path, 'read', '', 'token of i1')
  await assert.rejects(findSigner({ ...file, signature }), /no store/)
  fails = false
  assert.equal(await findSigner({ ...file, signature }), 'i1')
})
