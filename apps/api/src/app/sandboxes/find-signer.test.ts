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
  let asked = 0
  const findSigner = createFindSigner({
    store: {
      async listByState(states) {
        asked += 1
        assert.deepEqual(states, ['running', 'snapshotting'])
        return running.map((id) => ({ id, state: 'running' as const }))
      },
    },
    tokenOf: (id) => `token of ${id}`,
  })
  return { findSigner, running, asked: () => asked }
}

test('the sandbox whose token signed is found, and remembered', async () => {
  const { findSigner, asked } = setup()
  const signature = sign(file.path, 'read', '', 'token of i777')
  assert.equal(await findSigner({ ...file, signature }), 'i777')
  assert.equal(await findSigner({ ...file, signature }), 'i777')
  assert.equal(asked(), 1)
})

test('the signature covers user, operation and expiration', async () => {
  const { findSigner } = setup(10)
  const signature = sign(file.path, 'write', 'anna', 'token of i3', '1700000000')
  const whole = { ...file, operation: 'write', username: 'anna', signature } as const
  assert.equal(await findSigner({ ...whole, expiration: '1700000001' }), undefined)
  assert.equal(await findSigner({ ...whole, expiration: undefined }), undefined)
  assert.equal(
    await findSigner({ ...whole, operation: 'read', expiration: '1700000000' }),
    undefined,
  )
  assert.equal(await findSigner({ ...whole, expiration: '1700000000' }), 'i3')
})

test('a sandbox that has ended signs nothing more, a new one does', async () => {
  const { findSigner, running } = setup(2)
  running.pop()
  running.push('inew')
  const ended = sign(file.path, 'read', '', 'token of i1')
  assert.equal(await findSigner({ ...file, signature: ended }), undefined)
  const fresh = sign(file.path, 'read', '', 'token of inew')
  assert.equal(await findSigner({ ...file, signature: fresh }), 'inew')
})

test('a malformed signature is refused without a search', async () => {
  const { findSigner, asked } = setup()
  for (const signature of ['', 'v1_', 'v1_x', `v2_${'a'.repeat(43)}`, `v1_${'a'.repeat(5000)}`]) {
    assert.equal(await findSigner({ ...file, signature }), undefined)
  }
  assert.equal(asked(), 0)
})

test('a flood of unknown signatures is refused, and waiting requests are served', async () => {
  const { findSigner } = setup(10)
  const floods = Array.from({ length: 200 }, (_, i) =>
    findSigner({ ...file, signature: sign('flood', String(i)) }).then(
      () => 'searched',
      ({ kind }: { kind: string }) => kind,
    ),
  )
  const outcomes = await Promise.all(floods)
  assert.equal(outcomes.filter((outcome) => outcome === 'exhausted').length, 136)
  const signature = sign(file.path, 'read', '', 'token of i7')
  assert.equal(await findSigner({ ...file, signature }), 'i7')
})

test('a store that fails does not keep the next from searching', async () => {
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
