import assert from 'node:assert/strict'
import { test } from 'node:test'
import { start } from './sandbox.ts'
import type { Kept, RunningSandbox, Sandbox, SandboxState } from './sandbox.ts'
import {
  reconcileWithNode,
  beginMove,
  beginPause,
  beginResume,
  beginSnapshot,
  finishPause,
  backToRunning,
  isInTransition,
  postpone,
} from './sandbox-pause.ts'
import type { OnNode } from './sandbox-pause.ts'

const began = new Date('2026-01-01T00:00:00Z')

function at(seconds: number): Date {
  return new Date(began.getTime() + seconds * 1000)
}

function running(): RunningSandbox {
  const creating = {
    id: 'i1',
    nodeId: 'n1',
    generation: 1,
    teamId: 't1',
    templateId: 'tpl',
    buildId: 'b1',
    alias: 'base',
    parent: undefined,
    state: 'creating' as const,
    resources: { cpuCount: 1, memoryMb: 512, diskSizeMb: 1024 },
    metadata: undefined,
    secure: true,
    allowInternetAccess: undefined,
    network: undefined,
    lifecycle: { autoPause: false, autoPauseMemory: true, autoResume: false },
    timeoutSeconds: 300,
    createdAt: began,
    holder: 'p1',
    networkHolder: undefined,
    keptBytes: undefined,
    keptGeneration: undefined,
    keptId: undefined,
    durableGeneration: undefined,
    storedGeneration: undefined,
    envdVersion: undefined,
    startedAt: undefined,
    endAt: undefined,
    kept: undefined,
    endReason: undefined,
    endedAt: undefined,
  }
  return start(creating, { now: began, seconds: 300, envdVersion: '0.5.7' })
}

function essence({ state, holder, startedAt, endAt, kept }: Sandbox) {
  return { state, holder, startedAt, endAt, kept }
}

const paused = finishPause(beginPause(running(), 'p1', 7), at(10), 'memory')

test('a pause records its process, and its end time is the time of the pause', () => {
  assert.deepEqual(essence(beginPause(running(), 'p1', 7)), {
    ...essence(running()),
    state: 'pausing',
    holder: 'p1',
  })
  assert.deepEqual(essence(paused), {
    state: 'paused',
    holder: undefined,
    startedAt: began,
    endAt: at(10),
    kept: 'memory',
  })
})

test('a sandbox that was copied, or could not be paused, returns to running', () => {
  assert.deepEqual(backToRunning(beginPause(running(), 'p1', 7)), running())
  assert.deepEqual(backToRunning(beginSnapshot(running(), 'p1')), running())
})

test('after a resume its time begins anew', () => {
  const resumed = start(beginResume(paused, 'p2'), {
    now: at(100),
    seconds: 60,
    envdVersion: '0.6.0',
  })
  assert.deepEqual(essence(resumed), {
    state: 'running',
    holder: undefined,
    startedAt: at(100),
    endAt: at(160),
    kept: undefined,
  })
})

test('only an expired sandbox is postponed', () => {
  assert.deepEqual(postpone(running(), at(300), 8).endAt, at(308))
  assert.deepEqual(postpone(running(), at(299), 8), running())
  assert.deepEqual(postpone(paused, at(300), 8), paused)
})

const left: Readonly<Record<string, Sandbox>> = {
  running: running(),
  pausing: beginPause(running(), 'p1', 7),
  paused,
  resuming: beginResume(paused, 'p1'),
  snapshotting: beginSnapshot(running(), 'p1'),
}

const has = (state: 'running' | 'paused', kept: Kept, generation = 1): OnNode => ({
  ...{ state, kept, generation },
})

const whatBecomes: readonly (readonly [string, OnNode, object])[] = [
  ['running', has('running', 'files'), { state: 'running', endAt: at(300) }],
  ['running', has('paused', 'files'), { state: 'paused', endAt: at(50), kept: 'files' }],
  ['pausing', has('running', 'files'), { state: 'running', endAt: at(300) }],
  ['pausing', has('paused', 'memory'), { state: 'paused', endAt: at(50) }],
  ['paused', has('paused', 'memory'), { state: 'paused', endAt: at(10) }],
  ['paused', has('running', 'files'), { state: 'running', startedAt: at(50) }],
  ['resuming', has('paused', 'memory'), { state: 'paused', endAt: at(10) }],
  ['resuming', has('running', 'files'), { state: 'running', endAt: at(110) }],
  ['snapshotting', has('running', 'files'), { state: 'running', endAt: at(300) }],
  ['snapshotting', has('paused', 'memory'), { state: 'paused', kept: 'memory' }],
  ['running', has('running', 'files', 3), { state: 'running', generation: 3 }],
  ['paused', has('paused', 'memory', 3), { state: 'paused', generation: 3 }],
  ['resuming', has('paused', 'memory', 1), { state: 'paused', generation: 2 }],
  ...Object.keys(left).map(
    (state) => [state, undefined, { state: 'ended', endedAt: at(50) }] as const,
  ),
]

for (const [state, onNode, expected] of whatBecomes) {
  test(`left ${state}, ${onNode?.state ?? 'absent'} on the node`, () => {
    const sandbox = left[state] ?? assert.fail()
    const settled = reconcileWithNode(sandbox, onNode, { now: at(50), seconds: 60 })
    assert.deepEqual({ ...settled, ...expected }, settled)
    if (onNode) assert.equal(settled.holder, undefined)
  })
}

test('a sandbox that its move resumed keeps its start time, and its end time if 30 seconds are left', () => {
  const extended = { ...running(), endAt: at(86_400) }
  const onNode = has('running', 'files')
  const moving = (sandbox: RunningSandbox) =>
    finishPause(beginMove(sandbox, { holder: 'p1', keptBytes: 7, now: at(5) }), at(10), 'memory')
  const timesOf = (sandbox: Sandbox, isRequested = false) => {
    const settled = reconcileWithNode(sandbox, onNode, { now: at(50), seconds: 60, isRequested })
    return [settled.startedAt, settled.endAt, settled.move]
  }
  for (const claim of [(sandbox: Sandbox) => sandbox, (one: Sandbox) => beginResume(one, 'p1')]) {
    assert.deepEqual(timesOf(claim(moving(extended))), [began, at(86_400), undefined])
    const ending = moving({ ...running(), endAt: at(60) })
    assert.deepEqual(timesOf(claim(ending)), [began, at(80), undefined])
  }
  const byClient = beginResume(moving(extended), 'p1')
  assert.deepEqual(timesOf(byClient, true), [at(50), at(110), undefined])
  // The client has paused the sandbox again since the move.
  const later = finishPause(beginPause(extended, 'p1', 7), at(10), 'memory')
  const move = { kind: 'underway', generation: 0, endAt: at(86_400) } as const
  assert.deepEqual(timesOf({ ...later, move }), [at(50), at(110), undefined])
})

test('transitional states are recognized', () => {
  const passing = Object.values(left).filter(isInTransition)
  const states: SandboxState[] = passing.map(({ state }) => state)
  assert.deepEqual(states, ['pausing', 'resuming', 'snapshotting'])
})
