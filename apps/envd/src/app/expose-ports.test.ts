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
  let polls = 0
  const exposing = exposePorts({
    listeners() {
      polls += 1
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
  const freeze = (seconds: number) => void (nowMs += seconds * 1000)
  return {
    state,
    exposing,
    runPass,
    freeze,
    reported,
    polls: () => polls,
    forwards: () => [...forwards],
  }
}

test('a loopback-only port is forwarded within a second, until it stops listening', async (t) => {
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

test('the first pass after a freeze is deferred, but only once', async (t) => {
  const { runPass, freeze, polls } = setup(t)
  freeze(100)
  await runPass(1)
  assert.equal(polls(), 0)
  freeze(100)
  await runPass(1)
  assert.equal(polls(), 1)
})

test('a pass moves forwards to a new address', async (t) => {
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

test('updateAddress moves forwards at once, and does nothing if the address is the same', async (t) => {
  const { state, exposing, runPass, polls, forwards } = setup(t)
  await exposing.updateAddress()
  state.listeners = [{ port: 80, scope: 'loopback4' }]
  await runPass(1)
  const before = polls()
  await exposing.updateAddress()
  assert.equal(polls(), before)
  state.address = '10.0.0.6'
  await exposing.updateAddress()
  assert.deepEqual(forwards(), ['10.0.0.6:80 to 127.0.0.1'])
  await runPass(3)
  assert.equal(polls(), before + 4)
})

test('a port in use is retried, and an error does not stop the reconciler', async (t) => {
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

test('an idle sandbox is polled less often, until a nudge', async (t) => {
  const { exposing, runPass, polls } = setup(t)
  await runPass(300)
  assert.equal(polls(), 300)
  await runPass(100)
  const idle = polls()
  assert.ok(idle <= 322, String(idle))
  exposing.nudge()
  await runPass(1)
  assert.equal(polls(), idle + 1)
  await runPass(3)
  assert.equal(polls(), idle + 4)
})

test('close ends all forwards and stops polling', async (t) => {
  const { state, exposing, runPass, polls, forwards } = setup(t)
  state.listeners = [{ port: 80, scope: 'loopback4' }]
  await runPass(1)
  await exposing.close()
  assert.deepEqual(forwards(), [])
  const before = polls()
  exposing.nudge()
  await runPass(10)
  assert.equal(polls(), before)
})
