import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import { createRunStartCommand } from './start-command.ts'

/** Creates a cell whose ready command returns the given exit codes. */
function setup(given: Partial<Setup> | undefined, exitCodes: number[] = [0]) {
  const done: string[] = []
  const run = createRunStartCommand({
    assignIdentity: async (_cell, { accessToken }) =>
      void done.push(`tell ${accessToken !== undefined}`),
    commands: {
      async run(_door, { args, user, cwd }, { onLine }) {
        done.push(`run ${args.at(-1)} as ${user} in ${cwd}`)
        await onLine('stdout', 'looking')
        return { exitCode: exitCodes.shift() ?? 0 }
      },
      start: async (_door, { args }) => void done.push(`start ${args.at(-1)}`),
      put: async () => {},
    },
    dropBootPriority: async () => void done.push('level'),
  })
  const record = {
    cellId: 'c1',
    phase: 'making' as const,
    disk: 'disk.img',
    templateId: 't1',
    cpuCount: 1,
    memoryMb: 128,
    diskSizeMb: 64,
    runtime: 'gvisor' as const,
    layer: 'l1',
    envd: 'e1',
    initToken: 'secret',
    ...(given && { setup: { user: 'user', envVars: {}, ...given } }),
  }
  const slot = { number: 1, hostAddress: '', sandboxAddress: '', link: '', namespace: '' }
  return { run: (options = {}) => run({ record, slot }, options), done }
}

test('a template without a start command starts nothing', async () => {
  const { run, done } = setup(undefined)
  await run()
  assert.deepEqual(done, [])
  const other = setup({ workdir: '/srv' })
  await other.run()
  assert.deepEqual(other.done, [])
})

test('the start command runs, then the ready command is repeated until it succeeds', async () => {
  const { run, done } = setup(
    { startCommand: 'serve', readyCommand: 'ask', workdir: '/srv' },
    [1, 0],
  )
  const lines: string[] = []
  await run({ onLine: async (_stream: string, line: string) => void lines.push(line) })
  const ask = 'run ask as user in /srv'
  assert.deepEqual(done, ['tell true', 'level', 'start serve', ask, ask])
  assert.deepEqual(lines, ['looking'], 'the output of the last attempt')
})

test('without a ready command, the program gets a fixed time to start', async () => {
  const { run, done } = setup({ startCommand: 'serve' })
  await run()
  assert.deepEqual(done.slice(2), ['start serve', 'run sleep 20 as user in undefined'])
})

test('a canceled start ends at once', async () => {
  const { run } = setup({ readyCommand: 'never' }, Array<number>(1000).fill(1))
  await assert.rejects(run({ signal: AbortSignal.abort() }), { name: 'AbortError' })
})
