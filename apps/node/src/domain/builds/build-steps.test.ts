import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finalSetup, layerKey } from './build.ts'
import type { BuildRequest, BuildStep } from './build.ts'
import { planSteps } from './build-steps.ts'
import { defaultSetup } from '../sandboxes/setup.ts'
import { BuildError } from './build-error.ts'

const hash = 'a'.repeat(64)

function request(steps: (readonly [type: string, ...args: string[]])[]): BuildRequest {
  return {
    shape: { templateId: 't1', cpuCount: 1, memoryMb: 128, diskSizeMb: 64 },
    parent: 'base',
    ownerId: 'team',
    force: false,
    steps: steps.map(([type, ...args]): BuildStep => ({ type, args, force: false })),
  }
}

const plan = (...steps: (readonly [string, ...string[]])[]) =>
  planSteps(request(steps), defaultSetup)

test('variables, user and directory of a step apply to later steps', () => {
  const planned = plan(
    ['ENV', 'A', 'one', 'B', '$A two ${A} \\$A $C'],
    ['user', 'worker'],
    ['WORKDIR', '/srv'],
    ['WORKDIR', 'app/../x'],
    ['RUN', 'make', ''],
  )
  const last = planned.at(-1)
  assert.equal(last?.title, 'RUN make')
  assert.deepEqual(last?.command, {
    command: '/bin/bash',
    args: ['-l', '-c', 'make'],
    user: 'worker',
    cwd: '/srv/x',
    envVars: { A: 'one', B: 'one two one $A ' },
  })
  assert.deepEqual(
    planned.map(({ command }) => command !== undefined),
    [false, true, true, true, true],
  )
})

test('PATH may be added to before anything has set it', () => {
  const [planned, other] = plan(['ENV', 'PATH', "/it's here:$PATH"], ['ENV', 'A', 'b'])
  assert.match(planned?.setup.envVars['PATH'] ?? '', /^\/it's here:.*\/usr\/bin/)
  // Login shells get the PATH as well.
  assert.match(planned?.command?.args.at(-1) ?? '', /^'\/it'\\''s here:.*'$/)
  assert.equal(other?.command, undefined)
})

test('a command may say by whom it is run, for itself alone', () => {
  const planned = plan(['RUN', 'a', 'root'], ['RUN', 'b'])
  assert.deepEqual(
    planned.map(({ command }) => command?.user),
    ['root', 'user'],
  )
})

test('there is always a root, and a folder /', () => {
  const planned = plan(['USER', 'root'], ['WORKDIR', '/'], ['RUN', 'id'])
  assert.deepEqual(
    planned.map(({ command }) => command?.user),
    [undefined, undefined, 'root'],
  )
  assert.equal(planned.at(-1)?.command?.cwd, '/')
})

test('a copy goes where its user works', () => {
  const steps = (target: string, workdir?: string) => ({
    ...request(workdir === undefined ? [] : [['WORKDIR', workdir]]),
    steps: [
      ...(workdir === undefined ? [] : [{ type: 'WORKDIR', args: [workdir], force: false }]),
      { type: 'COPY', args: ['x', target, '', ''], filesHash: hash, force: false },
    ],
  })
  const placeOf = (target: string, workdir?: string) =>
    planSteps(steps(target, workdir), defaultSetup).at(-1)?.command?.args.slice(4, 6)
  assert.deepEqual(placeOf('.'), ['/home/user', 'yes'])
  assert.deepEqual(placeOf('a/b', '/srv'), ['/srv/a/b', ''])
  assert.deepEqual(placeOf('/etc/'), ['/etc', 'yes'])
})

const mistakes: [what: string, step: [string, ...string[]], message: RegExp][] = [
  ['an unknown step', ['EXPOSE', '80'], /no step EXPOSE: use RUN, COPY/],
  ['an empty command', ['RUN', ' '], /RUN needs a command/],
  ['NUL in a command', ['RUN', 'a\0b'], /NUL/],
  ['a copy without files', ['COPY', 'a', 'b'], /without files/],
  ['half a variable', ['ENV', 'A'], /in turn/],
  ['a variable with =', ['ENV', 'A=B', 'c'], /cannot be the name of a variable/],
  ['a user by number', ['USER', '1000'], /name of a user, which 1000 is not/],
  ['a user with options', ['USER', '--root=/'], /name of a user/],
  ['no folder', ['WORKDIR', ''], /needs a path/],
  ['a folder of two lines', ['WORKDIR', '/a\nb'], /needs a path/],
  ['too large a variable', ['ENV', 'A', 'x'.repeat(70_000)], /64 KiB/],
]

for (const [what, step, message] of mistakes) {
  test(`${what} is a mistake in its step`, () => {
    assert.throws(
      () => plan(['RUN', 'true'], step),
      (error) => error instanceof BuildError && error.step === '2' && message.test(error.message),
    )
  })
}

test('forcing a step forces all later steps', () => {
  const { steps, ...rest } = request([
    ['RUN', 'a'],
    ['RUN', 'b'],
    ['RUN', 'c'],
  ])
  const forced = steps.map((step, at) => ({ ...step, force: at === 1 }))
  const planned = planSteps({ ...rest, steps: forced }, defaultSetup)
  assert.deepEqual(
    planned.map(({ isForced }) => isForced),
    [false, true, true],
  )
})

test('a template inherits the start and ready command of its parent, unless it has its own', () => {
  const parent = { ...defaultSetup, startCommand: 'serve', readyCommand: 'ask' }
  const none = request([])
  assert.deepEqual(finalSetup(none, parent, undefined), parent)
  assert.deepEqual(finalSetup({ ...none, startCommand: 'other' }, parent, undefined), {
    ...defaultSetup,
    startCommand: 'other',
  })
  assert.deepEqual(finalSetup({ ...none, readyCommand: 'look' }, parent, undefined), {
    ...parent,
    readyCommand: 'look',
  })
  const [ran] = planSteps(request([['RUN', 'a']]), parent)
  assert.equal(ran?.setup.startCommand, undefined)
})

test('a layer serves the same work on the same files for the same owner', () => {
  const [a, b] = plan(['RUN', 'a'], ['RUN', 'b'])
  assert.ok(a?.command && b?.command)
  const key = layerKey('team', 'l1', a.command)
  assert.equal(layerKey('team', 'l1', { ...a.command }), key)
  const others = [
    layerKey('other', 'l1', a.command),
    layerKey('team', 'l2', a.command),
    layerKey('team', 'l1', b.command),
  ]
  assert.equal(new Set([key, ...others]).size, 4)
})

test('variables that grow by each other are stopped before they are large', () => {
  const doubling = Array.from({ length: 40 }, (): [string, string, string] => ['ENV', 'A', '$A$A'])
  assert.throws(() => plan(['ENV', 'A', 'x'.repeat(100)], ...doubling), /64 KiB/)
  const many = '$A'.repeat(30_000)
  assert.throws(() => plan(['ENV', 'A', 'x'.repeat(60_000)], ['ENV', 'B', many]), /64 KiB/)
})

test('names of objects mean nothing', () => {
  const [planned] = plan(['ENV', 'A', '[$constructor$toString]'])
  assert.equal(planned?.setup.envVars['A'], '[]')
})

test('steps are short', () => {
  assert.throws(() => plan(['RUN', 'x'.repeat(1_100_000)]), /1 MiB/)
  assert.throws(
    () => plan(...Array.from({ length: 201 }, (): [string, string] => ['RUN', 'a'])),
    /200 steps/,
  )
})
