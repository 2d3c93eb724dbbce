import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyChange, globalVariables, parseChange } from './settings.ts'

test('the first change fills missing fields with defaults', () => {
  const settings = applyChange(undefined, {})
  assert.equal(settings?.defaultUser, 'root')
  assert.deepEqual(settings?.envVars, {})
  assert.equal(settings?.accessToken, undefined)
})

test('a change keeps absent fields, except the token', () => {
  const before = applyChange(undefined, {
    accessToken: 'a',
    envVars: { A: '1' },
    defaultUser: 'user',
    defaultWorkdir: '/work',
    sandboxId: 'i1',
    timestampMs: 5,
  })
  const after = applyChange(before, { defaultUser: '', templateId: 't1' })
  assert.deepEqual(after, { ...before, accessToken: undefined, templateId: 't1' })
})

test('a change for another sandbox ID applies however old it is', () => {
  const current = applyChange(undefined, { timestampMs: 5, sandboxId: 'i1' })
  assert.equal(applyChange(current, { timestampMs: 4, sandboxId: 'i1' }), undefined)
  const other = applyChange(current, { timestampMs: 4, sandboxId: 'i2' })
  assert.deepEqual([other?.sandboxId, other?.timestampMs], ['i2', 4])
})

test('an older change is ignored; one of the same age or without a time applies', () => {
  const current = applyChange(undefined, { timestampMs: 5, accessToken: 'a' })
  assert.equal(applyChange(current, { timestampMs: 4, accessToken: 'b' }), undefined)
  assert.equal(applyChange(current, { timestampMs: 5, accessToken: 'b' })?.accessToken, 'b')
  const untimed = applyChange(current, { accessToken: 'b' })
  assert.deepEqual([untimed?.accessToken, untimed?.timestampMs], ['b', 5])
})

test('platform variables override user variables', () => {
  const envVars = { E2B_SANDBOX_ID: 'forged', E2B_SANDBOX: 'no', MINE: 'yes' }
  assert.deepEqual(globalVariables({ envVars, defaultUser: 'root', sandboxId: 'i1' }, {}), {
    E2B_SANDBOX: 'true',
    E2B_SANDBOX_ID: 'i1',
    MINE: 'yes',
  })
})

test('a body may have unknown keys, nulls and fractional seconds', () => {
  const body = { timestamp: '2026-01-01T00:00:00.123456789Z', accessToken: null, hyperloopIP: 7 }
  const change = parseChange(body)
  assert.deepEqual([change.timestampMs, change.accessToken], [1_767_225_600_123, undefined])
})

test('a variable may be named __proto__', () => {
  const change = parseChange(JSON.parse('{"envVars":{"__proto__":"x"}}'))
  assert.deepEqual(Object.entries(change.envVars ?? {}), [['__proto__', 'x']])
})
