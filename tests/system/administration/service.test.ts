/** The systemd unit without systemd: its start command, environment and limits, exactly as written. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { atoll, createEnvironment } from '../installation.ts'

test('the start command of the unit serves sandboxes, which outlive a restart of the service', async () => {
  await using image = await mkdtempDisposable(join(tmpdir(), 'atoll-unit-'))
  await using data = await mkdtempDisposable('/var/tmp/atoll-test-')
  // Disposed of before the data directory, the newest first.
  await using started = new AsyncDisposableStack()
  const address = `127.0.0.1:${await freePort()}`
  const metrics = `127.0.0.1:${await freePort()}`
  const env = createEnvironment(data.path, {
    ATOLL_LISTEN: address,
    ATOLL_METRICS_LISTEN: metrics,
    ATOLL_BASE_MEMORY_MB: '256',
  })
  await run(atoll, ['service', 'install', '--root', image.path], { env })
  const unit = await readFile(join(image.path, 'etc/systemd/system/atoll.service'), 'utf8')
  assert.equal(valuesOf(unit, 'KillMode').join(), 'process')
  started.defer(async () => void (await run(atoll, ['down'], { env, timeoutMs: 300_000 })))
  const settings = await readFile(join(image.path, 'etc/atoll/atoll.env'), 'utf8')
  const environment = [...valuesOf(unit, 'Environment'), ...settings.split('\n').filter(isSetting)]

  /** Drops the capabilities first, as systemd does. */
  const start = async () => {
    const dropped = valuesOf(unit, 'CapabilityBoundingSet').flatMap((list) =>
      list.replace(/^~/, '').split(' '),
    )
    const bounding = dropped.map((name) => name.replace('CAP_', '-').toLowerCase()).join(',')
    const command = valuesOf(unit, 'ExecStart').join().split(' ')
    const args = [`--bounding-set=${bounding}`, '--', 'env', '-i', ...environment, ...command]
    const child = spawn('setpriv', args, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
    const exited = once(child, 'exit')
    started.defer(async () => {
      child.kill('SIGKILL')
      await exited
    })
    let errors = ''
    child.stderr.on('data', (chunk) => (errors += String(chunk)))
    await waitFor('the server', async () => {
      assert.equal(child.exitCode, null, errors)
      return fetch(`http://${address}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    })
    return child
  }
  const cli = (...args: readonly string[]) =>
    run(atoll, args, { env: { ...env, ATOLL_API_URL: `http://${address}` } })

  const first = await start()
  const id = (await cli('sandbox', 'create')).trim()
  await cli('sandbox', 'exec', id, 'echo kept > /tmp/kept')
  const exit = once(first, 'exit')
  first.kill('SIGTERM')
  assert.deepEqual(await exit, [0, null])
  const second = await start()
  assert.equal(await cli('sandbox', 'exec', id, 'cat /tmp/kept'), 'kept\n')
  const status = await readFile(`/proc/${second.pid}/status`, 'utf8')
  const bounding = BigInt(`0x${/^CapBnd:\s+(\w+)$/m.exec(status)?.[1]}`)
  const [sysModule, sysBoot, sysAdmin] = [16n, 22n, 21n].map((bit) => (bounding >> bit) & 1n)
  assert.deepEqual([sysModule, sysBoot, sysAdmin], [0n, 0n, 1n])
  const scraped = await (await fetch(`http://${metrics}/metrics`)).text()
  for (const line of [
    /^atoll_sandboxes\{state="running"\} 1$/m,
    /^atoll_node_memory_bytes\{kind="total"\} [1-9]/m,
    /^atoll_node_disk_bytes\{mount=".*",kind="used"\} [1-9]/m,
    /^atoll_pool_takes_total\{result="miss"\} \d/m,
    /^# TYPE atoll_runtime_call_duration_seconds histogram$/m,
  ]) {
    assert.match(scraped, line)
  }
  assert.match(await cli('logs', '--json'), /"event":"server.start"/)
})

function valuesOf(unit: string, directive: string): string[] {
  return [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

function isSetting(line: string): boolean {
  return /^[A-Z_]+=/.test(line)
}
