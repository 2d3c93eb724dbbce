import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runningSandbox } from '../../sim/running-sandbox.ts'
import { createHangDetector } from './hung-sandboxes.ts'

function setup() {
  const ended: string[] = []
  const sandboxes = new Map<string, { oomKills: number; lost: readonly string[] }>()
  const asked: string[] = []
  const failures: string[] = []
  const orphanedRequests = ({ started }: { started: string }) => {
    asked.push(started)
    if (started === 'odd') throw new Error('odd')
    return sandboxes.get(started)?.lost ?? []
  }
  const { check } = createHangDetector({
    running: () => [...sandboxes.keys()].map(runningSandbox),
    oomKills: (cellId) => sandboxes.get(cellId)?.oomKills ?? 0,
    runtimes: { gvisor: { orphanedRequests }, runc: { orphanedRequests } },
    end: ({ record }) => void ended.push(record.cellId),
    onError: (error) => void failures.push(String(error)),
  })
  const checks = (count: number) => {
    for (let turn = 0; turn < count; turn += 1) check()
  }
  return { sandboxes, ended, asked, failures, checks }
}

test('only a sandbox that hangs after a lack of memory is ended', () => {
  const { sandboxes, ended, checks } = setup()
  sandboxes.set('well', { oomKills: 0, lost: [] })
  sandboxes.set('poor', { oomKills: 3, lost: [] })
  sandboxes.set('hung', { oomKills: 1, lost: ['a'] })
  checks(4)
  assert.deepEqual(ended, [])
  checks(1)
  assert.deepEqual(ended, ['hung'])
})

test('a failed check of one cell does not stop the checks of the others', () => {
  const { sandboxes, ended, failures, checks } = setup()
  sandboxes.set('odd', { oomKills: 1, lost: [] })
  sandboxes.set('hung', { oomKills: 1, lost: ['a'] })
  checks(5)
  assert.deepEqual(ended, ['hung'])
  assert.deepEqual(new Set(failures), new Set(['Error: odd']))
})

test('a sandbox that waits for different things is not considered hung', () => {
  const { sandboxes, ended, checks } = setup()
  for (const lost of [['a', 'b'], ['b'], ['c'], ['a'], [], ['a'], ['b', 'a']]) {
    sandboxes.set('busy', { oomKills: 1, lost })
    checks(2)
  }
  assert.deepEqual(ended, [])
})

test('a sandbox without OOM kills is not checked', () => {
  const { sandboxes, asked, checks } = setup()
  sandboxes.set('well', { oomKills: 0, lost: ['a'] })
  checks(9)
  assert.deepEqual(asked, [])
})
