import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Code, ConnectError } from '@connectrpc/connect'
import { reasonHeader } from '@atoll/contracts/node-faults'
import { toCreateFault } from './node-faults.ts'

const refusal = (reason: string) =>
  new ConnectError('needs sve', Code.FailedPrecondition, { [reasonHeader]: reason })

test('a node whose CPU cannot run a snapshot says so, so that another node is tried', () => {
  const { reason, message } = toCreateFault(refusal('node_unsuitable'), 'i1')
  assert.deepEqual([reason, message], ['node_unsuitable', 'needs sve'])
})

test('a snapshot of another runtime is an error of the request', () => {
  assert.equal(toCreateFault(refusal('other_runtime'), 'i1').reason, 'snapshot_unreadable')
})
