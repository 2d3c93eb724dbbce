import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { test } from 'node:test'
import { runningSandbox } from '../../sim/running-sandbox.ts'
import { createOomRecovery } from './oom-recovery.ts'

function setup() {
  const sandboxes = new Map<string, { kills: number; answers: boolean | Promise<boolean> }>()
  const heard: string[] = []
  const stateOf = (name: string) => sandboxes.get(name) ?? { kills: 0, answers: true }
  const { check } = createOomRecovery({
    running: () => [...sandboxes.keys()].map(runningSandbox),
    oomKills(cellId) {
      if (cellId === 'odd') throw new Error('odd')
      return stateOf(cellId).kills
    },
    freezeAndThaw: async ({ record }) => void heard.push(`cycle ${record.cellId}`),
    async answers({ record }) {
      heard.push(`ask ${record.cellId}`)
      return stateOf(record.cellId).answers
    },
    async killUnlessAnswers({ record }) {
      heard.push(`end ${record.cellId}`)
      return stateOf(record.cellId).answers
    },
    onError: (error) => void heard.push(String(error)),
  })
  /** Runs `count` checks. Returns the actions they caused. */
  const checks = async (count: number) => {
    heard.length = 0
    for (let turn = 0; turn < count; turn += 1) {
      check()
      await setImmediate()
    }
    return [...heard]
  }
  return { sandboxes, checks }
}

test('a cell without OOM kills is not touched', async () => {
  const { sandboxes, checks } = setup()
  sandboxes.set('well', { kills: 0, answers: true })
  assert.deepEqual(await checks(9), [])
})

test('a cell with an OOM kill is frozen and thawed, then asked until envd answers', async () => {
  const { sandboxes, checks } = setup()
  sandboxes.set('poor', { kills: 1, answers: false })
  assert.deepEqual(await checks(3), ['cycle poor', 'ask poor', 'ask poor'])
  sandboxes.set('poor', { kills: 1, answers: true })
  assert.deepEqual(await checks(9), ['ask poor'])
})

test('each loss is looked after, but not at each look', async () => {
  const { sandboxes, checks } = setup()
  const cycled = []
  for (let kills = 1; kills <= 11; kills += 1) {
    sandboxes.set('poor', { kills, answers: true })
    cycled.push((await checks(1)).filter((what) => what.startsWith('cycle')).length)
  }
  assert.deepEqual(cycled, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1])
  sandboxes.set('poor', { kills: 12, answers: true })
  assert.deepEqual(
    (await checks(9)).filter((what) => what.startsWith('cycle')),
    ['cycle poor'],
  )
})

test('a cell that stays silent is ended, also if it has more OOM kills meanwhile', async () => {
  const { sandboxes, checks } = setup()
  sandboxes.set('mute', { kills: 1, answers: false })
  const first = await checks(10)
  sandboxes.set('mute', { kills: 2, answers: false })
  const then = await checks(20)
  assert.ok(![...first, ...then].includes('end mute'))
  assert.deepEqual(await checks(1), ['end mute'])
})

test('a cell with an OOM kill at each check is kept as long as envd answers', async () => {
  const { sandboxes, checks } = setup()
  const seen: string[] = []
  for (let kills = 1; kills < 100; kills += 1) {
    // The answer arrives after the next check.
    const { promise, resolve } = Promise.withResolvers<boolean>()
    sandboxes.set('busy', { kills, answers: promise })
    seen.push(...(await checks(1)))
    setImmediate().then(
      () => resolve(true),
      () => {},
    )
  }
  assert.ok(seen.includes('ask busy'))
  assert.ok(!seen.includes('end busy'))
})

test('a cell whose envd answers at the last check keeps running', async () => {
  const { sandboxes, checks } = setup()
  sandboxes.set('slow', { kills: 1, answers: false })
  await checks(30)
  sandboxes.set('slow', { kills: 1, answers: true })
  assert.deepEqual(await checks(9), ['end slow'])
})

test('an answer from before another loss does not count', async () => {
  const { sandboxes, checks } = setup()
  const { promise, resolve } = Promise.withResolvers<boolean>()
  sandboxes.set('poor', { kills: 1, answers: promise })
  assert.deepEqual(await checks(3), ['cycle poor', 'ask poor'])
  sandboxes.set('poor', { kills: 2, answers: true })
  await checks(1)
  resolve(true)
  await setImmediate()
  assert.ok((await checks(1)).includes('ask poor'))
})

test('a failed check of one cell does not stop the checks of the others', async () => {
  const { sandboxes, checks } = setup()
  sandboxes.set('odd', { kills: 1, answers: true })
  sandboxes.set('poor', { kills: 1, answers: true })
  assert.deepEqual(await checks(1), ['Error: odd', 'cycle poor'])
})
