import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import type { Listener } from '../domain/sandbox/listeners.ts'
import { exposePorts } from './expose-ports.ts'

function setup(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const state = {
    listeners: [] as Listener[],
    address: '10.0.0.2' as string | undefined,
    taken: new Set<number>(),
    fails: false,
  }
  const forwards = new Set<string>()
  const reported: unknown[] = []
  let nowMs = 0
  let looks = 0
  const exposing = exposePorts({
    listeners() {
      looks += 1
      if (state.fails) throw new Error('no table')
      return state.listeners
    },
    address: () => state.address,
    async forward(address, port, host) {
      if (state.taken.has(port)) return undefined
      const name = `${address}:${port} to ${host}`
      forwards.add(name)
      return { close: async () => void forwards.delete(name) }
    },
    nowMs: () => nowMs,
    report: (cause) => reported.push(cause),
  })
  /** Advances the clock second by second and runs the timers that are due. */
  const runPass = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      nowMs += 1000
      t.mock.timers.tick(1000)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  /** Advances the clock without running timers, as while the sandbox is frozen. */
  const standStill = (seconds: number) => void (nowMs += seconds * 1000)
  return {
    state,
    exposing,
    runPass,
    standStill,
    reported,
    looks: () => looks,
    forwards: () => [...forwards],
  }
}

test('a hidden port is forwarded within a second, and no longer than it listens', async (t) => {
  const { state, runPass, forwards } = setup(t)
  state.listeners = [
    { port: 80, scope: 'loopback4' },
    { port: 81, scope: 'loopback6' },
    { port: 82, scope: 'any' },
  ]
  await runPass(1)
  assert.deepEqual(forwards(), ['10.0.0.2:80 to 127.0.0.1', '10.0.0.2:81 to ::1'])
  state.listeners = [{ port: 81, scope: 'loopback4' }]
  await runPass(1)
  assert.deepEqual(forwards(), ['10.0.0.2:81 to 127.0.0.1'])
  state.listeners = [{ port: 81, scope: 'any' }]
  await runPass(1)
  assert.deepEqual(forwards(), [])
})

test('whoever lets a sandbox go on is served before it looks, but it is put off once', async (t) => {
  const { runPass, standStill, looks } = setup(t)
  standStill(100)
  await runPass(1)
  assert.equal(looks(), 0)
  standStill(100)
  await runPass(1)
  assert.equal(looks(), 1)
})

test('a sandbox that got another address forwards from that', async (t) => {
  const { state, runPass, forwards } = setup(t)
  state.listeners = [{ port: 80, scope: 'loopback4' }]
  await runPass(1)
  state.address = '10.0.0.6'
  await runPass(1)
  assert.deepEqual(forwards(), ['10.0.0.6:80 to 127.0.0.1'])
  state.address = undefined
  await runPass(1)
  assert.deepEqual(forwards(), [])
})

test('a new address is followed at once when asked, and otherwise nothing is looked at', async (t) => {
  const { state, exposing, runPass, looks, forwards } = setup(t)
  await exposing.updateAddress()
  state.listeners = [{ port: 80, scope: 'loopback4' }]
  await runPass(1)
  const before = looks()
  await exposing.updateAddress()
  assert.equal(looks(), before)
  state.address = '10.0.0.6'
  await exposing.updateAddress()
  assert.deepEqual(forwards(), ['10.0.0.6:80 to 127.0.0.1'])
  await runPass(3)
  assert.equal(looks(), before + 4)
})

test('a port that is held by another is tried again, and a failure is no end', async (t) => {
  const { state, runPass, forwards, reported } = setup(t)
  state.listeners = [{ port: 80, scope: 'loopback4' }]
  state.taken.add(80)
  await runPass(1)
  assert.deepEqual(forwards(), [])
  state.taken.delete(80)
  state.fails = true
  await runPass(1)
  assert.equal(reported.length, 1)
  state.fails = false
  await runPass(1)
  assert.deepEqual(forwards(), ['10.0.0.2:80 to 127.0.0.1'])
})

test('an idle sandbox is looked at less often, until something happens', async (t) => {
  const { exposing, runPass, looks } = setup(t)
  await runPass(300)
  assert.equal(looks(), 300)
  await runPass(100)
  const idle = looks()
  assert.ok(idle <= 322, String(idle))
  exposing.nudge()
  await runPass(1)
  assert.equal(looks(), idle + 1)
  await runPass(3)
  assert.equal(looks(), idle + 4)
})

test('the end closes all, and nothing is looked at any more', async (t) => {
  const { state, exposing, runPass, looks, forwards } = setup(t)
  state.listeners = [{ port: 80, scope: 'loopback4' }]
  await runPass(1)
  await exposing.close()
  assert.deepEqual(forwards(), [])
  const before = looks()
  exposing.nudge()
  await runPass(10)
  assert.equal(looks(), before)
})
