import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runningSandbox } from '../../sim/running-sandbox.ts'
import { createRest } from './idle-throttle.ts'

function setup() {
  const used = new Map<string, bigint>()
  const told: string[] = []
  let nowNs = 0n
  const rest = ({ started }: { started: string }, depth: string) => {
    told.push(`${started} ${depth}`)
  }
  const ports = {
    running: () => [...used.keys()].map(runningSandbox),
    cpuUsedNs: (cellId: string) => used.get(cellId),
    runtimes: { gvisor: { rest }, runc: { rest } },
    nowNs: () => nowNs,
  }
  return {
    ports,
    told,
    begin: (name: string) => used.set(name, 0n),
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

test('a sandbox that does nothing is let rest, and deeper after a while', () => {
  const { ports, told, begin, pass } = setup()
  const { look, isAsleep } = createRest(ports)
  const rest = (share: number, looks: number) => {
    for (let turn = 0; turn < looks; turn += 1) {
      pass({ idle: share })
      look()
    }
  }
  begin('idle')
  look()
  rest(27, 3)
  assert.deepEqual(told, ['idle awake'])
  rest(27, 1)
  assert.deepEqual(told, ['idle awake', 'idle drowsy'])
  rest(7, 15)
  assert.ok(!isAsleep('idle'))
  rest(7, 1)
  assert.deepEqual(told, ['idle awake', 'idle drowsy', 'idle asleep'])
  rest(2, 5)
  assert.ok(isAsleep('idle'))
  rest(60, 1)
  assert.ok(!isAsleep('idle'))
  assert.equal(told.at(-1), 'idle awake')
})

test('one that begins to work is woken at the next look', () => {
  const { ports, told, begin, pass } = setup()
  const { look } = createRest(ports)
  begin('used')
  look()
  for (const share of [27, 27, 27, 27, 49, 51, 300]) {
    pass({ used: share })
    look()
  }
  assert.deepEqual(told, ['used awake', 'used drowsy', 'used awake'])
})

test('one that a predecessor let rest is told what is right, whatever that is', () => {
  const { ports, told, begin, end, pass } = setup()
  const { look } = createRest(ports)
  begin('busy')
  begin('ended')
  look()
  pass({ busy: 900 })
  end('ended')
  look()
  begin('ended')
  look()
  assert.deepEqual(told, ['busy awake'])
})
