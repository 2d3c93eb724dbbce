import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkLaunch, guestExecArguments } from './launch.ts'

const user = { name: 'anna', uid: 1000, gid: 1001, groups: [1001, 27], home: '/home/anna' }
const launch = { command: 'ls', args: ['-l', '--', 'x'], env: { A: '1' }, cwd: '/tmp', user }

test('the guest gets user, cwd and command, and leaves options of the command alone', () => {
  assert.deepEqual(
    guestExecArguments(launch).join(' '),
    'exec --uid 1000 --gid 1001 --groups 1001,27 --cwd /tmp --oom 100 -- ls -l -- x',
  )
})

test('launches within the limits pass', () => {
  checkLaunch(launch)
  checkLaunch({ ...launch, args: ['x'.repeat(131_071)] })
  checkLaunch({ ...launch, args: [''], env: { 'odd name!': 'ä\n' } })
})

const refused: [string, Partial<typeof launch>][] = [
  ['no command', { command: '' }],
  ['NUL in the command', { command: 'a\0' }],
  ['NUL in an argument', { args: ['\0'] }],
  ['NUL in the cwd', { cwd: '/\0' }],
  ['NUL in a variable', { env: { A: '\0' } }],
  ['a long argument', { args: ['x'.repeat(131_072)] }],
  ['a long argument in bytes', { args: ['ä'.repeat(65_536)] }],
  [
    'arguments that are too large together',
    { args: Array.from({ length: 17 }, () => 'x'.repeat(130_000)) },
  ],
  ['too many arguments', { args: Array.from({ length: 250_000 }, () => '') }],
]

for (const [what, change] of refused) {
  test(`${what} is rejected`, () => {
    assert.throws(() => checkLaunch({ ...launch, ...change }), { kind: 'invalid' })
  })
}

for (const name of ['', 'A=B', '=']) {
  test(`a variable named '${name}' is rejected`, () => {
    assert.throws(() => checkLaunch({ ...launch, env: { ...launch.env, [name]: 'x' } }), {
      kind: 'invalid',
    })
  })
}
