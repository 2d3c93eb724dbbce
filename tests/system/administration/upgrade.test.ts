/** An upgrade from the previous release and a rollback to it: all resources stay usable. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { Sandbox, Secret, Template } from 'e2b'
import { openEarlierRelease } from './earlier-release.ts'
import type { EarlierRelease } from './earlier-release.ts'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const sandboxTimeoutMs = 1_800_000

/** Sandboxes, a snapshot and a template that one release creates and another release uses. */
interface Resources {
  readonly running: Sandbox
  readonly paused: Sandbox
  /** Paused without memory. */
  readonly filesOnly: Sandbox
  readonly snapshotId: string
  readonly template: string
  /** Value in the memory of the sandboxes and of the snapshot. */
  readonly secret: string
}

suite('an upgrade and a rollback on gvisor', () => {
  let earlier: EarlierRelease | undefined
  let installation: Installation
  let connection: Installation['connection']

  before(async () => {
    earlier = await openEarlierRelease()
    if (!earlier) return
    const settings = { ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '256' }
    installation = await install(settings, { from: earlier.dir })
    connection = installation.connection
  })
  after(async () => {
    await installation?.[Symbol.asyncDispose]()
    await earlier?.[Symbol.asyncDispose]()
  })

  test('sandboxes, snapshots, templates and secrets stay usable in both directions', async (t) => {
    if (!earlier) return t.skip('the git history lacks the commit of the previous release')
    const { dir } = earlier
    const oldResources = await createResources('old')
    await Secret.create('kept', 'a-value', connection)

    await restart()
    await checkResources(oldResources)
    assert.equal(await Secret.exists('kept', connection), true)
    const status = JSON.parse(await run(atoll, ['status', '--json'], installation))
    assert.deepEqual(status.quarantined, [])
    const newResources = await createResources('recent')

    await restart(dir)
    await checkResources(oldResources)
    await checkResources(newResources)
    assert.equal(await Secret.exists('kept', connection), true)

    await installation.crash()
    await installation.start()
    await checkResources(oldResources)
    await checkResources(newResources)
    const lastStatus = JSON.parse(await run(atoll, ['status', '--json'], installation))
    assert.deepEqual(lastStatus.quarantined, [])
  })

  async function restart(from?: string): Promise<void> {
    assert.equal(await installation.interrupt(), 0)
    await installation.start({}, from)
  }

  async function createResources(name: string): Promise<Resources> {
    const secret = randomUUID()
    const createSandbox = async () => {
      const sandbox = await Sandbox.create({ ...connection, timeoutMs: sandboxTimeoutMs })
      await sandbox.files.write('/dev/shm/secret', secret)
      return sandbox
    }
    const running = await createSandbox()
    const paused = await createSandbox()
    const { snapshotId } = await paused.createSnapshot()
    await paused.pause()
    const filesOnly = await createSandbox()
    await filesOnly.files.write('/home/user/secret', secret)
    await filesOnly.pause({ keepMemory: false })
    const template = Template().fromBaseImage().runCmd(`echo ${secret} > /home/user/secret`)
    await Template.build(template, name, { ...connection, memoryMB: 256 })
    return { running, paused, filesOnly, snapshotId, template: name, secret }
  }

  async function checkResources({
    running,
    paused,
    filesOnly,
    snapshotId,
    template,
    secret,
  }: Resources): Promise<void> {
    assert.equal(await running.files.read('/dev/shm/secret'), secret)
    assert.equal((await running.commands.run('echo well')).stdout, 'well\n')
    await paused.connect({ timeoutMs: sandboxTimeoutMs })
    assert.equal(await paused.files.read('/dev/shm/secret'), secret)
    await paused.pause()
    await filesOnly.connect({ timeoutMs: sandboxTimeoutMs })
    assert.equal(await filesOnly.files.read('/home/user/secret'), secret)
    await filesOnly.pause({ keepMemory: false })
    const copy = await Sandbox.create(snapshotId, connection)
    assert.equal(await copy.files.read('/dev/shm/secret'), secret)
    const fromTemplate = await Sandbox.create(template, connection)
    assert.equal((await fromTemplate.files.read('/home/user/secret')).trim(), secret)
    await Promise.all([copy.kill(), fromTemplate.kill()])
  }
})
