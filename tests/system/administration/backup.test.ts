/** A backup of a busy installation, and a second installation from it with another path and other addresses. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Secret, Template } from 'e2b'
import { readCounter, startCounter } from '../counter.ts'
import { envdHeaders, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { atollProgram } from '../../../tools/bundle/programs.mjs'
import { atoll, repository } from '../installation.ts'

const settings = { ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '256' }
const timeout = 3_600
const commandLimitMs = 600_000

/** Acknowledged by the first installation before the backup began. */
interface Acknowledged {
  readonly paused: HttpSandbox
  readonly pausedCount: number
  /** Paused without memory. */
  readonly filesOnly: HttpSandbox
  readonly snapshotId: string
  readonly snapshotCount: number
  readonly running: HttpSandbox
  readonly key: string
}

suite('backup and restore on gvisor', { timeout: 1_800_000 }, () => {
  let original: HttpCloud
  let folder = ''
  let backup = ''
  let acknowledged: Acknowledged

  before(async () => {
    folder = await mkdtemp('/var/tmp/atoll-test-backup-')
    backup = join(folder, 'backup')
    original = await startCloud(settings)
    acknowledged = await prepare(original)
  })
  after(async () => {
    await original?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  test('a backup that is killed leaves no backup and no links behind', async () => {
    const { installation } = original
    const command = startAndStop(['backup', backup], installation.env, '% settings')
    await command.stopped
    const links = join(installation.dataDir, '.backup')
    assert.notDeepEqual(await readdir(links), [])
    await command.kill()
    await waitFor(
      'the server to give the backup up',
      async () => (await readdir(links)).length === 0,
    )
    const left = await readdir(folder)
    assert.match(left.join(), /^backup\.partial-\w+$/)
    await rm(join(folder, left.join()), { recursive: true })
  })

  test('a backup of a busy server has everything that was acknowledged before it began', async () => {
    const { paused, filesOnly, snapshotId } = acknowledged
    const churn = startChurn(original)
    const command = startAndStop(['backup', backup], original.installation.env, '% settings')
    await command.stopped
    // The captured files change and go while the command, which is stopped, has copied only a few of them.
    await post(original, `/sandboxes/${paused.sandboxID}/connect`, { timeout })
    await readCounter(original.installation.url, paused)
    await post(original, `/sandboxes/${filesOnly.sandboxID}/connect`, { timeout })
    await writeFile(original, filesOnly, 'changed during the backup')
    const deleted = await original.platform('DELETE', `/templates/${snapshotId}`)
    assert.equal(deleted.status, 204, deleted.text)
    assert.match(await command.finish(), /paused sandboxes: \d+, snapshots: 1, built templates: 1/)
    assert.ok((await churn.stop()) > 0, 'nothing changed during the backup')
    assert.deepEqual(await readdir(join(original.installation.dataDir, '.backup')), [])
    const again = await tryRun(atoll, ['backup', backup], { env: original.installation.env })
    assert.notEqual(again.code, 0)
    assert.match(again.stderr, /is not empty/)
  })

  test('a damaged, incomplete or occupied restore is refused before anything changes', async () => {
    const dataDir = join(folder, 'refused')
    const env = { ...process.env, ATOLL_DATA_DIR: dataDir }
    const refuse = async (reason: RegExp) => {
      const { code, stderr } = await tryRun(atoll, ['restore', backup], {
        env,
        timeoutMs: commandLimitMs,
      })
      assert.equal(code, 1)
      assert.match(stderr, reason)
    }
    const [name = ''] = await readdir(join(backup, 'cells'))
    const archive = join(backup, 'cells', name)
    await flipByte(archive)
    await refuse(/is damaged: the checksum of cells\/.* is wrong/)
    await flipByte(archive)
    await rename(archive, `${archive}.away`)
    await refuse(/is damaged: cells\/.* is missing/)
    await rename(`${archive}.away`, archive)
    await rename(join(backup, 'manifest.json'), join(backup, 'manifest.away'))
    await refuse(/is not a backup/)
    await rename(join(backup, 'manifest.away'), join(backup, 'manifest.json'))
    assert.deepEqual(await readdir(dataDir), [])
    await mkdir(join(dataDir, 'something'))
    await refuse(/is not empty/)
    assert.deepEqual(await readdir(dataDir), ['something'])
  })

  test('no server starts on a restore that was killed', async () => {
    const dataDir = join(folder, 'killed')
    const env = { ...process.env, ATOLL_DATA_DIR: dataDir }
    const command = startAndStop(['restore', backup], env, '% restore ')
    await command.stopped
    await command.kill()
    const { code, stdout, stderr } = await tryRun(atoll, ['up'], { env, timeoutMs: commandLimitMs })
    assert.equal(code, 1)
    assert.match(stdout + stderr, /A restore into .* was interrupted. Empty the directory/)
    await rm(dataDir, { recursive: true })
  })

  test('a server that does not run can be backed up, and an installation from the first backup has it all, with memory', async () => {
    const { paused, pausedCount, filesOnly, snapshotId, snapshotCount, running, key } = acknowledged
    // The restored installation takes the names of the original on no network, but only one may have its sandboxes.
    await original.installation.interrupt()
    const { env: ofOriginal } = original.installation
    const options = { env: ofOriginal, timeoutMs: commandLimitMs }
    const printed = await run(atoll, ['backup', join(folder, 'without-server')], options)
    assert.match(printed, /paused sandboxes: \d+, snapshots: 0, built templates: 1/)
    const dataDir = join(folder, 'data')
    // Layers come from the backup, not from the folder that test installations share.
    const place = { ATOLL_DATA_DIR: dataDir, ATOLL_LAYERS_DIR: join(dataDir, 'layers') }
    const env = { ...process.env, ...place }
    await run(atoll, ['restore', backup], { env, timeoutMs: commandLimitMs })
    await using restored = await startCloud({ ...settings, ...place })
    const { url, connection, apiKey } = restored.installation
    assert.equal(apiKey, original.installation.apiKey)

    const resumed = await post(restored, `/sandboxes/${paused.sandboxID}/connect`, { timeout })
    assert.ok((await readCounter(url, resumed)) > pausedCount)
    const booted = await post(restored, `/sandboxes/${filesOnly.sandboxID}/connect`, { timeout })
    assert.equal(await readFile(restored, booted), 'before the backup')
    const copy = await restored.createSandbox({ templateID: snapshotId, timeout })
    assert.ok((await readCounter(url, copy)) > snapshotCount)
    const fromTemplate = await restored.createSandbox({ templateID: 'kept-template', timeout })
    assert.equal(await readFile(restored, fromTemplate), 'from the template\n')
    assert.equal(await Secret.exists('kept-secret', connection), true)
    const byKey = await restored.platform('GET', '/v2/sandboxes', undefined, { 'X-API-Key': key })
    assert.equal(byKey.status, 200)
    const gone = await restored.platform('GET', `/sandboxes/${running.sandboxID}`)
    assert.equal(gone.status, 404)
    assert.match(gone.text, /was running when the backup was taken/)
    const status = JSON.parse(await run(atoll, ['status', '--json'], restored.installation))
    assert.deepEqual(status.quarantined, [])
  })
})

async function prepare(cloud: HttpCloud): Promise<Acknowledged> {
  const { url, connection, env } = cloud.installation
  await Secret.create('kept-secret', 'value', connection)
  const key = (await run(atoll, ['key', 'create', 'kept-key'], { env })).trim()
  const template = Template().fromBaseImage().runCmd(`echo from the template > ${path}`)
  await Template.build(template, 'kept-template', { ...connection, memoryMB: 256 })
  const [paused, filesOnly, running] = [
    await cloud.createSandbox({ timeout }),
    await cloud.createSandbox({ timeout }),
    await cloud.createSandbox({ timeout }),
  ]
  await startCounter(url, paused)
  const snapshotCount = await readCounter(url, paused)
  const { snapshotID: snapshotId } = await post(
    cloud,
    `/sandboxes/${paused.sandboxID}/snapshots`,
    {},
  )
  const pausedCount = await readCounter(url, paused)
  await post(cloud, `/sandboxes/${paused.sandboxID}/pause`, {})
  await writeFile(cloud, filesOnly, 'before the backup')
  await post(cloud, `/sandboxes/${filesOnly.sandboxID}/pause`, { memory: false })
  return { paused, pausedCount, filesOnly, snapshotId, snapshotCount, running, key }
}

/** Creates, pauses and kills sandboxes until it is stopped. Returns the number of rounds. */
function startChurn(cloud: HttpCloud): { stop(): Promise<number> } {
  let isStopped = false
  let rounds = 0
  const turn = async () => {
    while (!isStopped) {
      const { sandboxID } = await cloud.createSandbox({ timeout })
      await post(cloud, `/sandboxes/${sandboxID}/pause`, {})
      if (rounds % 2 === 0) await post(cloud, `/sandboxes/${sandboxID}/connect`, { timeout })
      const killed = await cloud.platform('DELETE', `/sandboxes/${sandboxID}`)
      assert.equal(killed.status, 204, killed.text)
      rounds += 1
    }
  }
  const done = turn()
  // The failure is reported by `stop`.
  done.catch(() => {})
  return {
    async stop() {
      isStopped = true
      await done
      return rounds
    },
  }
}

/** Starts a command and stops its process (SIGSTOP) as soon as its progress contains a text. */
function startAndStop(args: readonly string[], env: NodeJS.ProcessEnv, stopAt: string) {
  const child = spawn(process.execPath, [atollProgram(repository), ...args], { env, stdio: 'pipe' })
  let messages = ''
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (messages += text))
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const ended = once(child, 'close')
  const stop = async () => {
    await waitFor(
      `${args[0]} to say "${stopAt}"`,
      async () => {
        assert.equal(child.exitCode, null, messages)
        return messages.includes(stopAt)
      },
      { timeoutMs: commandLimitMs, intervalMs: 5 },
    )
    child.kill('SIGSTOP')
  }
  const finish = async () => {
    const [code] = await ended
    assert.equal(code, 0, messages)
    return printed
  }
  return {
    stopped: stop(),
    async finish() {
      child.kill('SIGCONT')
      return finish()
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const path = '/home/user/kept'

async function writeFile({ installation }: HttpCloud, sandbox: HttpSandbox, text: string) {
  const body = new FormData()
  body.append('file', new Blob([text]), 'kept')
  const reply = await fetch(`${installation.url}/files?path=${path}&username=user`, {
    ...{ method: 'POST', headers: envdHeaders(sandbox), body },
  })
  assert.equal(reply.status, 200, await reply.text())
}

async function readFile({ installation }: HttpCloud, sandbox: HttpSandbox): Promise<string> {
  const address = `${installation.url}/files?path=${path}&username=user`
  const reply = await fetch(address, { headers: envdHeaders(sandbox) })
  const text = await reply.text()
  assert.equal(reply.status, 200, text)
  return text
}

async function post({ platform }: HttpCloud, address: string, body: object) {
  const { status, text } = await platform('POST', address, body)
  assert.ok(status >= 200 && status < 300, `${address}: ${status} ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

/** Inverts a byte in the middle; a second call restores the file. */
async function flipByte(file: string): Promise<void> {
  await using opened = await open(file, 'r+')
  const middle = Math.floor((await opened.stat()).size / 2)
  const { buffer } = await opened.read(Buffer.alloc(1), 0, 1, middle)
  await opened.write(Buffer.from([(buffer[0] ?? 0) ^ 0xff]), 0, 1, middle)
}
