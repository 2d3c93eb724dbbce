import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import {
  absent,
  beginKill,
  canBecome,
  end,
  isRunning,
  isShown,
  sandboxStates,
  shownState,
  start,
  statesShownAs,
  requestKill,
} from './sandbox.ts'
import type { Sandbox, SandboxState } from './sandbox.ts'
import { extend, setTimeoutOf } from './sandbox-time.ts'

const began = new Date('2026-01-01T00:00:00Z')

function sandboxIn(state: SandboxState): Sandbox {
  return {
    id: 'i1',
    nodeId: 'n1',
    generation: 1,
    teamId: 't1',
    templateId: 'tpl',
    buildId: 'b1',
    alias: 'base',
    parent: undefined,
    state,
    resources: { cpuCount: 1, memoryMb: 512, diskSizeMb: 1024 },
    metadata: undefined,
    secure: true,
    allowInternetAccess: undefined,
    network: undefined,
    lifecycle: { autoPause: false, autoPauseMemory: true, autoResume: false },
    timeoutSeconds: 300,
    createdAt: began,
    holder: undefined,
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
}

function running(seconds: number) {
  return start(sandboxIn('creating'), { now: began, seconds, envdVersion: '0.5.7' })
}

function at(seconds: number): Date {
  return new Date(began.getTime() + seconds * 1000)
}

test('all allowed state transitions', () => {
  const allowed = sandboxStates.flatMap((from) =>
    sandboxStates.filter((to) => canBecome(from, to)).map((to) => `${from} to ${to}`),
  )
  assert.deepEqual(allowed, [
    'creating to running',
    'creating to killing',
    'creating to ended',
    'running to pausing',
    'running to paused',
    'running to snapshotting',
    'running to killing',
    'running to ended',
    'pausing to running',
    'pausing to paused',
    'pausing to killing',
    'pausing to ended',
    'paused to running',
    'paused to resuming',
    'paused to killing',
    'paused to ended',
    'resuming to running',
    'resuming to paused',
    'resuming to killing',
    'resuming to ended',
    'snapshotting to running',
    'snapshotting to paused',
    'snapshotting to killing',
    'snapshotting to ended',
    'killing to paused',
    'killing to ended',
  ])
})

test('a start, a kill and an end are conflicts in the states that do not allow them', () => {
  const moves = {
    start: (sandbox: Sandbox) => start(sandbox, { now: began, seconds: 1, envdVersion: '1' }),
    beginKill: (sandbox: Sandbox) => beginKill(sandbox, 'was killed'),
    end: (sandbox: Sandbox) => end(sandbox, began, 'was killed'),
  }
  const conflicts = {
    start: ['running', 'killing', 'ended'],
    beginKill: ['killing', 'ended'],
    end: ['ended'],
  }
  for (const name of ['start', 'beginKill', 'end'] as const) {
    const refused = sandboxStates.filter((state) => {
      try {
        moves[name](sandboxIn(state))
        return false
      } catch (error) {
        return error instanceof Fault && error.kind === 'conflict'
      }
    })
    assert.deepEqual(refused, conflicts[name], name)
  }
})

test('a team sees its sandbox as running or paused, and not before the first start', () => {
  assert.deepEqual(statesShownAs('running'), ['running', 'snapshotting'])
  assert.deepEqual(statesShownAs('paused'), ['pausing', 'paused', 'resuming'])
  assert.equal(shownState(sandboxIn('killing')), undefined)
  assert.deepEqual([isShown(running(1)), isShown(sandboxIn('running'))], [true, false])
})

test('a request joins a kill that has begun, keeps its reason, and leaves an ended sandbox as it is', () => {
  const joined = requestKill(beginKill(running(1), 'reached its timeout'), 'was killed')
  assert.deepEqual([joined.isKillRequested, joined.endReason], [true, 'reached its timeout'])
  assert.equal(requestKill(joined, 'was killed'), joined)
  const ended = end(running(1), at(1), 'died')
  assert.equal(requestKill(ended, 'was killed'), ended)
  assert.equal(end(joined, at(1), 'was killed').isKillRequested, true)
})

test('the lifetime of a sandbox counts from its start', () => {
  const { startedAt, endAt, envdVersion } = running(300)
  assert.deepEqual(
    { startedAt, endAt, envdVersion },
    {
      startedAt: began,
      endAt: at(300),
      envdVersion: '0.5.7',
    },
  )
  assert.ok(isRunning(running(300)))
  assert.ok(!isRunning(sandboxIn('creating')))
})

for (const { from, now, seconds, expected } of [
  { from: 300, now: 10, seconds: 5, expected: 15 },
  { from: 300, now: 10, seconds: 0, expected: 10 },
  { from: 300, now: 10, seconds: 600, expected: 610 },
  { from: 300, now: 10, seconds: 5000, expected: 1000 },
]) {
  test(`timeout ${seconds} at ${now} s sets the end to ${expected} s`, () => {
    const changed = setTimeoutOf(running(from), { now: at(now), seconds, maxSeconds: 1000 })
    assert.deepEqual(changed.endAt, at(expected))
  })
}

test('an extension never shortens the lifetime', () => {
  const limits = { now: at(10), maxSeconds: 1000 }
  assert.deepEqual(extend(running(300), { ...limits, seconds: 5 }).endAt, at(300))
  assert.deepEqual(extend(running(300), { ...limits, seconds: 600 }).endAt, at(610))
  assert.deepEqual(extend(running(300), { ...limits, seconds: 5000 }).endAt, at(1000))
})

test('a timeout is refused after the maximum lifetime', () => {
  assert.throws(
    () => setTimeoutOf(running(2000), { now: at(1000), seconds: 1, maxSeconds: 1000 }),
    /Max instance length exceeded/,
  )
})

test('the first reason of an end is kept', () => {
  const killed = end(beginKill(running(1), 'reached its timeout'), at(1), 'was killed')
  assert.deepEqual([killed.endReason, killed.endedAt], ['reached its timeout', at(1)])
  assert.equal(end(running(1), at(1), 'ran out of memory').endReason, 'ran out of memory')
})

for (const [reason, text] of [
  [
    'ran out of memory (limit 512 MB)',
    'Sandbox i1 was not found: it ran out of memory (limit 512 MB)',
  ],
  ['died: its first process ended', 'Sandbox i1 was not found: it died: its first process ended'],
] as const) {
  test(`an ended sandbox says why: ${reason}`, () => {
    assert.equal(absent('i1', end(running(1), at(1), reason)).message, text)
  })
}

test('an unknown or running sandbox is absent without a reason', () => {
  assert.equal(absent('i1').message, 'Sandbox i1 was not found')
  assert.equal(absent('i1', sandboxIn('killing')).message, 'Sandbox i1 was not found')
})
