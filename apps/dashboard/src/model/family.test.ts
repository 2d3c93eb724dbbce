import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LineageSandbox } from '@atoll/client/replies'
import { toFamilyRows } from './family.ts'

const createdAt = '2026-01-01T00:00:00.000Z'

function sandbox(sandboxID: string, parentId?: string): LineageSandbox {
  return {
    ...{ sandboxID, templateID: 't', buildID: 'b', state: 'running', createdAt },
    ...(parentId !== undefined && { parent: { sandboxID: parentId, kind: 'fork' } }),
  }
}

function shape(sandboxes: LineageSandbox[], snapshotOf?: string): string[] {
  const snapshots = snapshotOf
    ? [{ snapshotID: 's', names: [], sandboxID: snapshotOf, createdAt }]
    : []
  return toFamilyRows({ sandboxes, snapshots, isComplete: true }).map((row) => {
    const name = { sandbox: '', snapshot: 'snapshot', gone: 'gone' }[row.kind]
    const id = row.kind === 'sandbox' ? row.sandbox.sandboxID : name
    return `${'-'.repeat(row.depth)}${id}`
  })
}

test('a tree lists each sandbox, its snapshots and its copies', () => {
  const all = [sandbox('a'), sandbox('b', 'a'), sandbox('c', 'a'), sandbox('d', 'b')]
  assert.deepEqual(shape(all, 'a'), ['a', '-snapshot', '-b', '--d', '-c'])
})

test('a parent that is not known any more is a root of its own', () => {
  assert.deepEqual(shape([sandbox('b', 'x'), sandbox('c', 'b')]), ['gone', '-b', '--c'])
})
