import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runningSandbox } from '../../sim/running-sandbox.ts'
import { createHangs } from './hung-sandboxes.ts'

function setup() {
  const ended: string[] = []
  const sandboxes = new Map<string, { oomKills: number; lost: readonly string[] }>()
  const asked: string[] = []
  const failures: string[] = []
  const lostAnswers = ({ started }: { started: string }) => {
    asked.push(started)
    if (started === 'odd') throw new Error('odd')
    return sandboxes.get(started)?.lost ?? []
  }
  const { look } = createHangs({
    running: () => [...sandboxes.keys()].map(runningSandbox),
    oomKills: (cellId) => sandboxes.get(cellId)?.oomKills ?? 0,
    runtimes: { gvisor: { lostAnswers }, runc: { lostAnswers } },
    end: ({ record }) => void ended.push(record.cellId),
    onError: (error) => void failures.push(String(error)),
  })
  const looks = (count: number) => {
    for (let turn = 0; turn < count; turn += 1) look()
  }
  return { sandboxes, ended, asked, failures, looks }
}

test('a sandbox that waits in vain after a lack of memory is ended, and no other', () => {
  const { sandboxes, ended, looks } = setup()
  sandboxes.set('well', { oomKills: 0, lost: [] })
  sandboxes.set('poor', { oomKills: 3, lost: [] })
  sandboxes.set('hung', { oomKills: 1, lost: ['a'] })
  looks(4)
  assert.deepEqual(ended, [])
  looks(1)
  assert.deepEqual(ended, ['hung'])
})

test('one that cannot be looked at keeps nobody from the others', () => {
  const { sandboxes, ended, failures, looks } = setup()
  sandboxes.set('odd', { oomKills: 1, lost: [] })
  sandboxes.set('hung', { oomKills: 1, lost: ['a'] })
  looks(5)
  assert.deepEqual(ended, ['hung'])
  assert.deepEqual(new Set(failures), new Set(['Error: odd']))
})

test('one that waits for this and that is not taken to hang', () => {
  const { sandboxes, ended, looks } = setup()
  for (const lost of [['a', 'b'], ['b'], ['c'], ['a'], [], ['a'], ['b', 'a']]) {
    sandboxes.set('busy', { oomKills: 1, lost })
    looks(2)
  }
  assert.deepEqual(ended, [])
})

test('who never lacked memory is not looked at', () => {
  const { sandboxes, asked, looks } = setup()
  sandboxes.set('well', { oomKills: 0, lost: ['a'] })
  looks(9)
  assert.deepEqual(asked, [])
})
