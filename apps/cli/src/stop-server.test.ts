import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { lockDataDir } from '@atoll/server/lock'
import { stopServer } from './stop-server.ts'

const killMs = 120_000

test('without a running server the data directory is locked until disposal', async (t) => {
  const dataDir = await setup(t)
  const server = await stopServer(dataDir)
  assert.equal(server.stopped, undefined)
  await assert.rejects(lockDataDir(dataDir), { reason: 'data_dir_in_use' })
  await server[Symbol.asyncDispose]()
  await using again = await lockDataDir(dataDir)
  assert.ok(again)
})

for (const program of ['main.ts', 'atoll.mjs']) {
  test(`a running server gets SIGTERM, as ${program}`, async (t) => {
    const dataDir = await setup(t)
    const pid = await startServer(t, dataDir, { program })
    await using server = await stopServer(dataDir, { termMs: 120_000, killMs })
    assert.deepEqual(server.stopped, { pid, by: 'SIGTERM' })
  })
}

test('a server that ignores SIGTERM is killed', async (t) => {
  const dataDir = await setup(t)
  const pid = await startServer(t, dataDir, { extra: `process.on('SIGTERM', () => {})` })
  await using server = await stopServer(dataDir, { termMs: 100, killMs })
  assert.deepEqual(server.stopped, { pid, by: 'SIGKILL' })
})

test('a PID file that names another process is not trusted', async (t) => {
  const dataDir = await setup(t)
  await using lock = await lockDataDir(dataDir)
  assert.ok(lock)
  const otherProcess = spawn('sleep', ['60'])
  t.after(() => otherProcess.kill('SIGKILL'))
  await writeFile(join(dataDir, 'server.pid'), `${otherProcess.pid}\n`)
  await assert.rejects(stopServer(dataDir), { reason: 'server_not_found' })
  assert.deepEqual([otherProcess.exitCode, otherProcess.signalCode], [null, null])
})

async function setup(t: TestContext): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-cli-'))
  t.after(() => rm(dataDir, { recursive: true }))
  return dataDir
}

/** Starts a program that locks the data directory and writes the PID file, as the server does. */
async function startServer(
  t: TestContext,
  dataDir: string,
  { program = 'main.ts', extra = '' } = {},
): Promise<number> {
  const main = join(dataDir, program)
  const lockFile = import.meta.resolve('@atoll/server/lock')
  await writeFile(
    main,
    `import { writeFileSync } from 'node:fs'
     const { lockDataDir } = await import('${lockFile}')
     await lockDataDir('${dataDir}')
     ${extra}
     writeFileSync('${dataDir}/server.pid', process.pid + '\\n')
     console.log('ready')
     setInterval(() => {}, 1000)`,
  )
  const child = spawn(process.execPath, [main])
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child.pid ?? 0
}
