import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm, stat, symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'

/** Time limit for a start, which takes 20 seconds or more on a busy machine. */
const patient = { timeoutMs: 120_000 }

async function setup(t: TestContext) {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-up-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const start = (env: Record<string, string> = {}, stdout: 'pipe' | number = 'pipe') => {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'sim/main.ts')], {
      env: { ATOLL_DATA_DIR: dataDir, ATOLL_LISTEN: '127.0.0.1:0', ...env },
      stdio: ['ignore', stdout, 'pipe'],
    })
    t.after(() => child.kill('SIGKILL'))
    const said = { stdout: '', stderr: '' }
    child.stdout?.on('data', (chunk) => (said.stdout += String(chunk)))
    child.stderr?.on('data', (chunk) => (said.stderr += String(chunk)))
    const exited = once(child, 'exit').then(([code]) => Number(code))
    const banner = (stream: 'stdout' | 'stderr' = 'stdout') =>
      waitFor(
        'the banner',
        () => (said[stream].includes('Try it:') ? said[stream] : child.exitCode !== null && 'dead'),
        patient,
      )
    return { child, said, exited, banner }
  }
  return { dataDir, start }
}

test('the first start shows key and token, the next one how to read the key', async (t) => {
  const { dataDir, start } = await setup(t)
  const first = start()
  const shown = await first.banner()
  assert.match(shown, /^50 % preparing\n/)
  assert.match(shown, /API key {7}e2b_[0-9a-f]{40}\n/)
  assert.match(shown, /Access token {2}sk_e2b_[0-9a-f]{40}\n/)
  assert.match(shown, /export E2B_API_KEY=e2b_[0-9a-f]{40}\n/)
  const [, url = ''] = /E2B_API_URL=(.*)\n/.exec(shown) ?? []
  const [, key = ''] = /E2B_API_KEY=(.*)\n/.exec(shown) ?? []
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' }
  const created = await fetch(`${url}/sandboxes`, {
    method: 'POST',
    headers,
    body: '{"templateID":"base"}',
  })
  assert.equal(created.status, 201)
  first.child.kill('SIGINT')
  assert.equal(await first.exited, 0)
  assert.match(first.said.stdout, /1 sandbox keeps running[^]*bin\/atoll down\n$/)

  const second = start()
  const again = await second.banner()
  assert.doesNotMatch(again, /e2b_[0-9a-f]/)
  assert.ok(again.includes(`E2B_API_KEY=$(ATOLL_DATA_DIR=${dataDir} bin/atoll key show)`), again)
  assert.match(again, /export E2B_API_URL=http:\/\/127.0.0.1:[0-9]+\n/)
  assert.match(await readFile(join(dataDir, 'logs/server.log'), 'utf8'), /"event":"server.start"/)
  second.child.kill('SIGTERM')
  assert.equal(await second.exited, 0)
})

test('with logs on standard output, messages for people go to standard error', async (t) => {
  const { start } = await setup(t)
  const server = start({ ATOLL_LOG: 'stdout' })
  await server.banner('stderr')
  server.child.kill('SIGTERM')
  assert.equal(await server.exited, 0)
  const lines = server.said.stdout.trim().split('\n')
  const events = lines.map((line): unknown => JSON.parse(line))
  assert.ok(events.length >= 2)
})

test('with logs on standard output, a full disk behind it does not stop the server', async (t) => {
  const { start } = await setup(t)
  const full = openSync('/dev/full', 'w')
  t.after(() => closeSync(full))
  const server = start({ ATOLL_LOG: 'stdout' }, full)
  await server.banner('stderr')
  server.child.kill('SIGTERM')
  assert.equal(await server.exited, 0)
})

test('a second server on the same data is refused and names it, also through a link', async (t) => {
  const { dataDir, start } = await setup(t)
  const first = start()
  await first.banner()
  const link = `${dataDir}-link`
  await symlink(dataDir, link)
  t.after(() => rm(link))
  for (const ATOLL_DATA_DIR of [dataDir, link]) {
    const second = start({ ATOLL_DATA_DIR })
    assert.equal(await second.exited, 1)
    assert.ok(second.said.stderr.includes(`Another Atoll server is using ${ATOLL_DATA_DIR}`))
  }
  const pid = await readFile(join(dataDir, 'server.pid'), 'utf8')
  assert.equal(pid, `${first.child.pid}\n`)
  first.child.kill('SIGKILL')
  await first.exited
  assert.match(await start().banner(), /Atoll is running/)
})

test('a server that hangs while it stops keeps others off its data until it is gone', async (t) => {
  const { dataDir, start } = await setup(t)
  const first = start({ SIMULATE: 'stuck close' })
  const [, url = ''] = /E2B_API_URL=(.*)\n/.exec(await first.banner()) ?? []
  first.child.kill('SIGTERM')
  await waitFor('the port to close', () =>
    fetch(url).then(
      () => false,
      () => true,
    ),
  )
  const second = start()
  assert.equal(await second.exited, 1)
  assert.ok(second.said.stderr.includes(`Another Atoll server is using ${dataDir}`))
  assert.equal(first.child.exitCode, null)
  first.child.kill('SIGTERM')
  assert.equal(await first.exited, 143)
  await assert.rejects(stat(join(dataDir, 'server.pid')), { code: 'ENOENT' })
  assert.match(await start().banner(), /Atoll is running/)
})

test('a server whose steps of the shutdown fail ends all the same', async (t) => {
  const { dataDir, start } = await setup(t)
  const server = start({ SIMULATE: 'failing close' })
  await server.banner()
  server.child.kill('SIGTERM')
  assert.equal(await server.exited, 0)
  const log = await readFile(join(dataDir, 'logs/server.log'), 'utf8')
  assert.match(log, /"event":"server.stop.step","step":"node"[^]*"event":"server.stop"/)
})

test('an address that is taken is an error that says what to do', async (t) => {
  const { start } = await setup(t)
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const address = other.address()
  assert.ok(address !== null && typeof address === 'object')
  const server = start({ ATOLL_LISTEN: `127.0.0.1:${address.port}` })
  assert.equal(await server.exited, 1)
  assert.match(server.said.stderr, /in use by another program[^]*ATOLL_LISTEN=127.0.0.1:/)
})

test('a signal while it starts ends it at once', async (t) => {
  const { start } = await setup(t)
  const server = start({ SIMULATE: 'slow start' })
  await waitFor('the progress', () => server.said.stdout.includes('preparing'), patient)
  server.child.kill('SIGINT')
  assert.equal(await server.exited, 130)
})

test('an unexpected error is logged and ends the process', async (t) => {
  const { dataDir, start } = await setup(t)
  const server = start({ SIMULATE: 'crash' })
  assert.equal(await server.exited, 1)
  assert.match(server.said.stderr, /unexpected error: Error: boom\nSee /)
  assert.match(await readFile(join(dataDir, 'logs/server.log'), 'utf8'), /"event":"server.crash"/)
})

test('all mistakes in the configuration are reported at once', async (t) => {
  const { start } = await setup(t)
  const server = start({ ATOLL_LISTEN: 'nowhere', ATOLL_READY_SLOTS: '-1', ATOLL_LOG: 'x' })
  assert.equal(await server.exited, 1)
  for (const name of ['ATOLL_LISTEN', 'ATOLL_READY_SLOTS', 'ATOLL_LOG']) {
    assert.ok(server.said.stderr.includes(name), server.said.stderr)
  }
})
