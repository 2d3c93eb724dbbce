import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runningSandbox } from '../../sim/running-sandbox.ts'
import { createIdleThrottle } from './idle-throttle.ts'

function setup() {
  const used = new Map<string, bigint>()
  const changes: string[] = []
  let nowNs = 0n
  let isCrowded = false
  const setIdleLevel = ({ started }: { started: string }, depth: string) => {
    changes.push(`${started} ${depth}`)
  }
  const ports = {
    running: () => [...used.keys()].map(runningSandbox),
    cpuUsedNs: (cellId: string) => used.get(cellId),
    runtimes: { gvisor: { setIdleLevel }, runc: { setIdleLevel } },
    nowNs: () => nowNs,
    isCrowded: () => isCrowded,
  }
  return {
    ports,
    changes,
    crowd: (now: boolean) => (isCrowded = now),
    start: (name: string) => used.set(name, 0n),
    end: (name: string) => used.delete(name),
    /** Advances half a second in which each sandbox used this many thousandths of a core. */
    pass(shares: Record<string, number>) {
      nowNs += 500_000_000n
      for (const [name, share] of Object.entries(shares)) {
        used.set(name, (used.get(name) ?? 0n) + BigInt(share) * 500_000n)
      }
    },
  }
}

test('an idle sandbox is throttled, and more after a while', () => {
  const { ports, changes, start, pass } = setup()
  const { check, isAsleep } = createIdleThrottle(ports)
  const use = (share: number, checks: number) => {
    for (let turn = 0; turn < checks; turn += 1) {
      pass({ idle: share })
      check()
    }
  }
  start('idle')
  check()
  use(27, 3)
  assert.deepEqual(changes, ['idle awake'])
  use(27, 1)
  assert.deepEqual(changes, ['idle awake', 'idle drowsy'])
  use(7, 15)
  assert.ok(!isAsleep('idle'))
  use(7, 1)
  assert.deepEqual(changes, ['idle awake', 'idle drowsy', 'idle asleep'])
  use(2, 5)
  assert.ok(isAsleep('idle'))
  use(60, 1)
  assert.ok(!isAsleep('idle'))
  assert.equal(changes.at(-1), 'idle awake')
})

test('while creates wait, an idle sandbox sleeps after a second', () => {
  const { ports, changes, start, pass, crowd } = setup()
  const { check } = createIdleThrottle(ports)
  const use = (checks: number) => {
    for (let turn = 0; turn < checks; turn += 1) {
      pass({ idle: 10 })
      check()
    }
  }
  start('idle')
  check()
  crowd(true)
  use(1)
  assert.deepEqual(changes, ['idle awake'])
  use(1)
  assert.deepEqual(changes, ['idle awake', 'idle asleep'])
  crowd(false)
  use(2)
  assert.equal(changes.at(-1), 'idle drowsy')
})

test('a sandbox that becomes busy is unthrottled at the next check', () => {
  const { ports, changes, start, pass } = setup()
  const { check } = createIdleThrottle(ports)
  start('used')
  check()
  for (const share of [27, 27, 27, 27, 49, 51, 300]) {
    pass({ used: share })
    check()
  }
  assert.deepEqual(changes, ['used awake', 'used drowsy', 'used awake'])
})

test('a sandbox that an earlier agent throttled gets the level that fits its use now', () => {
  const { ports, changes, start, end, pass } = setup()
  const { check } = createIdleThrottle(ports)
  start('busy')
  start('ended')
  check()
  pass({ busy: 900 })
  end('ended')
  check()
  start('ended')
  check()
  assert.deepEqual(changes, ['busy awake'])
})
