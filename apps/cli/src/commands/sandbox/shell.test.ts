import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { mainFile } from '../../sim/run-cli.ts'
import { setupCloud } from '../../sim/setup.ts'

test('all keys are sent to the sandbox, including Ctrl-C, and the CLI exits with the code of the shell', async (t) => {
  const { terminal } = await setup(t)
  await terminal.sees('[size 24x80]')
  assert.match(await terminal.settings(), / -icanon /)
  terminal.type('\u0003')
  await terminal.sees('[got "\\u0003"]')
  terminal.type('exit 9\r')
  await terminal.sees('code=9')
  assert.match(await terminal.settings(), / icanon /)
})

test('a change of the window size reaches the sandbox', async (t) => {
  const { terminal } = await setup(t)
  await terminal.sees('[size 24x80]')
  await terminal.resize(33, 99)
  await terminal.sees('[size 33x99]')
})

test('two window sizes are sent in order, even if the first request is slow', async (t) => {
  const { cloud, terminal } = await setup(t)
  await terminal.sees('[size 24x80]')
  const { resizeDelaysMs, sizes } = cloud.processes
  resizeDelaysMs.push(500)
  await terminal.resize(33, 80)
  await waitFor('the first size to be sent', () => resizeDelaysMs.length === 0)
  await terminal.resize(44, 80)
  await waitFor('both sizes', () => sizes.length === 2)
  assert.deepEqual(sizes, ['33x80', '44x80'])
})

test('the shell gets the TERM of the local terminal', async (t) => {
  const { cloud, terminal } = await setup(t)
  await terminal.sees('[size 24x80]')
  const [start] = cloud.processes.starts
  assert.equal(start?.request.process?.envs['TERM'], 'xterm-kitty')
  assert.deepEqual(start?.request.process?.args, ['-i', '-l'])
})

test('opening a terminal extends the timeout of the sandbox', async (t) => {
  const { cloud, terminal, id } = await setup(t)
  await terminal.sees('[size 24x80]')
  const extended = cloud.requests.filter((line) => line.includes('/connect'))
  assert.deepEqual(extended, [`POST /v2/sandboxes/${id}/connect {"timeout":300}`])
})

test('the terminal settings are restored if the connection to the sandbox is lost', async (t) => {
  const { cloud, terminal } = await setup(t)
  await terminal.sees('[size 24x80]')
  cloud.dropConnections()
  await terminal.sees('was lost')
  await terminal.sees('code=1')
  assert.match(await terminal.settings(), / icanon /)
})

for (const [signal, code] of [
  ['TERM', 143],
  ['HUP', 129],
] as const) {
  test(`SIG${signal} restores the terminal settings and ends the shell`, async (t) => {
    const { cloud, terminal } = await setup(t)
    await terminal.sees('[size 24x80]')
    process.kill(terminal.pid(), `SIG${signal}`)
    await terminal.sees(`code=${code}`)
    assert.equal(cloud.processes.count(), 0)
    assert.match(await terminal.settings(), / icanon /)
  })
}

test('the terminal settings are restored if the sandbox does not exist', async (t) => {
  const { terminal } = await setup(t, 'inone')
  await terminal.sees('Sandbox inone not found')
  await terminal.sees('code=1')
  assert.match(await terminal.settings(), / icanon /)
})

test('without a terminal the command fails, and the hint names `sandbox exec`', async (t) => {
  const { cloud, run: runCli } = await setupCloud(t)
  const { code, stderr } = await runCli(['sandbox', 'shell', cloud.addSandbox()])
  assert.equal(code, 1)
  assert.match(stderr, /needs a terminal.*\nhint: .*atoll sandbox exec/)
})

/** Runs the command in a pty of script(1). `cat` keeps the pty open, so that tests can read its settings afterwards. */
async function setup(t: TestContext, sandboxId?: string) {
  const { cloud, env } = await setupCloud(t)
  const id = sandboxId ?? cloud.addSandbox()
  const program = `sh -c 'echo pid=$$.; exec "${process.execPath}" "${mainFile}" sandbox shell ${id}'`
  const line = `stty rows 24 cols 80; tty; ${program}; echo code=$?; cat`
  const child = spawn('script', ['-qfc', line, '/dev/null'], {
    env: { ...env, SHELL: '/bin/sh', TERM: 'xterm-kitty' },
  })
  t.after(() => child.kill('SIGKILL'))
  let seen = ''
  child.stdout.on('data', (chunk: Buffer) => {
    seen += chunk.toString()
  })
  const device = await waitFor('the name of the terminal', () => /\/dev\/pts\/\d+/.exec(seen)?.[0])
  return {
    cloud,
    id,
    terminal: {
      /** Returns the PID of the CLI. */
      pid: () => Number(/pid=(\d+)\./.exec(seen)?.[1]),
      sees: (text: string) =>
        waitFor(`${text} on the terminal`, () => seen.includes(text)).catch((error: unknown) => {
          throw new Error(`the terminal shows ${JSON.stringify(seen)}`, { cause: error })
        }),
      type: (text: string) => child.stdin.write(text),
      resize: (rows: number, cols: number) =>
        run('stty', ['-F', device, 'rows', String(rows), 'cols', String(cols)]),
      settings: () => run('stty', ['-F', device, '-a']),
    },
  }
}
