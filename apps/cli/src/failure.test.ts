import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { explain } from './failure.ts'

const cases = [
  ['up', 'unavailable', /atoll doctor/],
  ['up', 'conflict', undefined],
  ['sandbox', 'unavailable', /atoll status/],
  ['sandbox', 'not_found', /atoll sandbox list/],
  ['sandbox create', 'not_found', /atoll snapshot list/],
  ['snapshot', 'not_found', /atoll snapshot list/],
  ['snapshot create', 'not_found', /atoll sandbox list/],
  ['key', 'not_found', /atoll key list/],
  ['sandbox', 'exhausted', /sandbox kill/],
  ['sandbox', 'invalid', undefined],
] as const

for (const [command, kind, hint] of cases) {
  test(`a fault of kind ${kind} in "atoll ${command}" has ${hint ? 'a hint' : 'no hint'}`, () => {
    const failure = explain(new Fault(kind, kind, 'Message of the server'), command.split(' '))
    assert.deepEqual([failure.message, failure.exitCode], ['Message of the server', 1])
    if (hint) assert.match(failure.hint ?? '', hint)
    else assert.equal(failure.hint, undefined)
  })
}

test('an unexpected error is reported with all its causes', () => {
  const thrown = new Error('while reading', { cause: new Error('disk on fire') })
  assert.deepEqual(explain(thrown, []), { message: 'while reading: disk on fire', exitCode: 1 })
})
