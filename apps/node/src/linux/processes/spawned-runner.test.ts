import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { randomHex } from '@atoll/kit/id'
import { outputLimitBytes } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { compileGuest } from '../../template/envd-build.ts'
import { identify, killProcess } from './process.ts'
import { createSpawnedRunner } from './spawned-runner.ts'
import type { SpawnedRunner } from './spawned-runner.ts'

describe('programs that a spawner runs', () => {
  let dir: string
  let spawner: readonly string[]
  let runner: SpawnedRunner
  const shell = (script: string) => ['-euc', script] as const
  /** Starts a program that does not exit by itself and writes its PID to a file. */
  const staying = () => {
    const file = join(dir, `pid-${randomHex(4)}`)
    const read = () => readFile(file, 'utf8').catch(() => '')
    return {
      args: shell(`echo $$ > ${file}; exec sleep 60`),
      pid: () => waitFor('its pid', async () => Number(await read()) || undefined),
      hasStarted: async () => (await read()) !== '',
    }
  }

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'atoll-runner-'))
    await compileGuest(dir, join(import.meta.dirname, '../../../../envd/guest'))
    spawner = [join(dir, 'guest'), 'spawner', '--tied']
    runner = createSpawnedRunner({ spawner, dir })
  })
  after(async () => {
    await runner[Symbol.asyncDispose]()
    await rm(dir, { recursive: true })
  })

  test('get their input, and return both outputs and the exit code', async () => {
    const script = shell('cat; echo wrong >&2; exit 7')
    assert.deepEqual(await runner.tryRun('sh', script, { input: 'grüezi\n' }), {
      code: 7,
      signal: null,
      stdout: 'grüezi\n',
      stderr: 'wrong\n',
    })
  })

  test('have an empty input by default', async () => {
    assert.equal(await runner.run('cat', []), '')
  })

  test('inherit no file with `stdio: ignore`', async () => {
    const links = '$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2)'
    const script = shell(`links=${links}; echo "$links" > "$1"; echo lost`)
    const file = join(dir, 'descriptors')
    const options = { stdio: 'ignore', input: 'lost' } as const
    assert.equal(await runner.run('sh', [...script, 'sh', file], options), '')
    assert.equal(await readFile(file, 'utf8'), '/dev/null\n'.repeat(3))
  })

  test('that fail are reported with their output', async () => {
    await assert.rejects(runner.run('sh', shell('echo broken >&2; exit 3')), {
      name: 'CommandFailed',
      message: /^sh -euc .*: exit 3: broken$/,
    })
  })

  test('that do not exist fail', async () => {
    const { code, stderr } = await runner.tryRun('no-such-program', [])
    assert.deepEqual([code, stderr], [127, 'no-such-program: command not found\n'])
    await assert.rejects(runner.run('/no/such/program', []), /exit 127/)
  })

  test('are reported with the signal that ended them', async () => {
    const { code, signal } = await runner.tryRun('sh', shell('kill -USR1 $$'))
    assert.deepEqual([code, signal], [null, 'SIGUSR1'])
  })

  test('have our environment and start in the root folder by default', async () => {
    const show = ['sh', shell('echo "$PWD $PATH ${SHAPE-}"')] as const
    assert.equal(await runner.run(...show), `/ ${process.env['PATH']} \n`)
    const env = { PATH: '/usr/bin:/bin', SHAPE: 'round', GONE: undefined }
    assert.equal(await runner.run(...show, { cwd: '/usr', env }), '/usr /usr/bin:/bin round\n')
  })

  test('may print more than the output limit, on both outputs', async () => {
    const bytes = outputLimitBytes + 100_000
    const script = shell(`head -c ${bytes} /dev/zero; head -c ${bytes} /dev/zero >&2`)
    const { code, stdout, stderr } = await runner.tryRun('sh', script)
    assert.deepEqual([code, stdout.length, stderr.length], [0, outputLimitBytes, outputLimitBytes])
  })

  test('are not waited for when they leave background processes', async () => {
    const pid = Number(await runner.run('sh', shell('sleep 60 & echo $!')))
    assert.notEqual(identify(pid), undefined)
    killProcess(pid)
  })

  test('are killed at their timeout', async () => {
    const { args, pid } = staying()
    const { code, signal } = await runner.tryRun('sh', args, { timeoutMs: 5_000 })
    assert.deepEqual([code, signal], [null, 'SIGKILL'])
    assert.equal(identify(await pid()), undefined)
  })

  test('are killed or not started when the caller cancels', async () => {
    const controller = new AbortController()
    const { signal } = controller
    const [first, second] = [staying(), staying()]
    const unwanted = runner.tryRun('sh', first.args, { signal })
    const pid = await first.pid()
    controller.abort()
    await assert.rejects(unwanted, { name: 'AbortError' })
    assert.equal(identify(pid), undefined)
    await assert.rejects(runner.tryRun('sh', second.args, { signal }), { name: 'AbortError' })
    assert.equal(await second.hasStarted(), false)
  })

  test('run fifty at a time, each with its own', async () => {
    const numbers = Array.from({ length: 50 }, (_, number) => `${number}\n`)
    const outputs = numbers.map((input) => runner.run('cat', [], { input }))
    assert.deepEqual(await Promise.all(outputs), numbers)
  })

  test('end with a spawner that is killed, and the next has another', async () => {
    await using own = createSpawnedRunner({ spawner, dir })
    const program = staying()
    const lost = own.tryRun('sh', program.args)
    const pid = await program.pid()
    const [, parent] = await statOf(pid)
    // The program may run before the spawner has reported its start.
    await waitFor('the spawner to wait', async () => (await statOf(Number(parent)))[0] === 'S')
    killProcess(Number(parent))
    const { code, signal } = await lost
    assert.deepEqual([code, signal], [null, 'SIGKILL'])
    await waitFor('its end', async () => identify(pid) === undefined)
    assert.equal(await own.run('echo', ['again']), 'again\n')
  })

  test('end with this process', async () => {
    const program = staying()
    const module = join(import.meta.dirname, 'spawned-runner.ts')
    const script = `
      import { createSpawnedRunner } from ${JSON.stringify(module)}
      const runner = createSpawnedRunner(${JSON.stringify({ spawner, dir })})
      await runner.run('sh', ${JSON.stringify(program.args)})`
    const victim = spawn(process.execPath, ['--input-type=module', '-e', script])
    const pid = await program.pid()
    assert.notEqual(identify(pid), undefined)
    victim.kill('SIGKILL')
    await waitFor('its end', async () => identify(pid) === undefined)
  })
})

/** Fields of /proc/<pid>/stat from the third one on: state, parent and others. */
async function statOf(pid: number): Promise<string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}
