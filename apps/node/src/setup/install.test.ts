import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { aptFault, parseAptStatus } from '../debian/apt.ts'
import { backportsOf } from './install.ts'

const debian = {
  uris: ['http://mirror.example/debian'],
  suites: ['bookworm', 'bookworm-updates'],
  components: ['main'],
  signedBy: '/k.gpg',
}

test('backports come from the mirror of the release, not from the mirror of its security updates', () => {
  const security = { ...debian, uris: ['http://security.example'], suites: ['bookworm-security'] }
  assert.deepEqual(backportsOf([security, debian], 'bookworm'), {
    ...debian,
    suites: ['bookworm-backports'],
  })
})

test('the error for sources without the release names the release', () => {
  assert.throws(() => backportsOf([debian], 'trixie'), /no archive for trixie/)
})

for (const [line, fraction] of [
  ['dlstatus:1:50.0:Retrieving file 1 of 2', 0.25],
  ['pmstatus:runc:50.0000:Unpacking runc (amd64)', 0.75],
  ['pmerror:runc:50.0000:went wrong', undefined],
  ['', undefined],
] as const) {
  test(`the progress in apt's status line "${line}" is ${fraction}`, () => {
    assert.equal(parseAptStatus(line), fraction)
  })
}

test('the error for an unreachable mirror says so and quotes apt; other errors name the command', () => {
  const fault = aptFault(['update'], 100, "E: Could not resolve 'mirror.example'")
  assert.ok(fault instanceof Fault)
  assert.match(fault.message, /Could not resolve[^]*mirror cannot be reached/)
  assert.match(aptFault(['install', 'x'], 100, 'E: broken').message, /apt-get install x failed/)
})
