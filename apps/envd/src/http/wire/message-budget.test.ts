import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Code, ConnectError } from '@connectrpc/connect'
import { createMessageBudget } from './message-budget.ts'

async function* bytes(...lengths: number[]) {
  for (const length of lengths) yield new Uint8Array(length)
}

const admitted = <T>(admission: T | undefined): T => {
  assert.ok(admission)
  return admission
}

test('concurrent messages share the budget of one and return it', () => {
  const budget = createMessageBudget(100, 5)
  const first = admitted(budget.admit(bytes(60), 60))
  assert.equal(budget.admit(bytes(60), 60), undefined)
  const second = admitted(budget.admit(bytes(40), 40))
  assert.equal(budget.admit(bytes(6), 6), undefined)
  admitted(budget.admit(bytes(5), 5)).release() // small messages always pass
  first.release()
  admitted(budget.admit(bytes(60), 60)).release()
  second.release()
})

test('a single message is never rejected by the budget', () => {
  admitted(createMessageBudget(100, 5).admit(bytes(200), 200))
})

test('a message of unknown length is counted as it arrives', async () => {
  const budget = createMessageBudget(100, 5)
  admitted(budget.admit(bytes(60), 60))
  const fits = admitted(budget.admit(bytes(20, 20), undefined))
  assert.equal((await Array.fromAsync(fits.body)).length, 2)
  fits.release()
  await assert.rejects(
    Array.fromAsync(admitted(budget.admit(bytes(20, 21), undefined)).body),
    (error) => error instanceof ConnectError && error.code === Code.ResourceExhausted,
  )
})
