/** An upgrade from the release before this one, and the way back: everything that was there stays usable. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { Sandbox, Secret, Template } from 'e2b'
import { openEarlierRelease } from './earlier-release.ts'
import type { EarlierRelease } from './earlier-release.ts'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const lifeMs = 1_800_000

/** Sandboxes, a snapshot and a template that one release made and another has to use. */
interface Works {
  readonly running: Sandbox
  readonly paused: Sandbox
  readonly snapshotId: string
  readonly template: string
  /** Value in the memory of the sandboxes and of the snapshot. */
  readonly secret: string
}

suite('an upgrade and a rollback on gvisor', { timeout: 900_000 }, () => {
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

  test('nothing is lost in either direction', async (t) => {
    if (!earlier) return t.skip('the history of this copy does not reach back to that release')
    const { dir } = earlier
    const old = await work('old')
    await Secret.create('kept', 'a-value', connection)

    await restart()
    await use(old)
    assert.equal(await Secret.exists('kept', connection), true)
    const status = JSON.parse(await run(atoll, ['status', '--json'], installation))
    assert.deepEqual(status.quarantined, [])
    const recent = await work('recent')

    await restart(dir)
    await use(old)
    await use(recent)
    assert.equal(await Secret.exists('kept', connection), true)

    await installation.crash()
    await installation.start()
    await use(old)
    await use(recent)
    const last = JSON.parse(await run(atoll, ['status', '--json'], installation))
    assert.deepEqual(last.quarantined, [])
  })

  async function restart(from?: string): Promise<void> {
    assert.equal(await installation.interrupt(), 0)
    await installation.start({}, from)
  }

  async function work(name: string): Promise<Works> {
    const secret = randomUUID()
    const open = async () => {
      const sandbox = await Sandbox.create({ ...connection, timeoutMs: lifeMs })
      await sandbox.files.write('/dev/shm/secret', secret)
      return sandbox
    }
    const running = await open()
    const paused = await open()
    const { snapshotId } = await paused.createSnapshot()
    await paused.pause()
    const template = Template().fromBaseImage().runCmd(`echo ${secret} > /home/user/secret`)
    await Template.build(template, name, { ...connection, memoryMB: 256 })
    return { running, paused, snapshotId, template: name, secret }
  }

  async function use({ running, paused, snapshotId, template, secret }: Works): Promise<void> {
    assert.equal(await running.files.read('/dev/shm/secret'), secret)
    assert.equal((await running.commands.run('echo well')).stdout, 'well\n')
    await paused.connect({ timeoutMs: lifeMs })
    assert.equal(await paused.files.read('/dev/shm/secret'), secret)
    await paused.pause()
    const copy = await Sandbox.create(snapshotId, connection)
    assert.equal(await copy.files.read('/dev/shm/secret'), secret)
    const built = await Sandbox.create(template, connection)
    assert.equal((await built.files.read('/home/user/secret')).trim(), secret)
    await Promise.all([copy.kill(), built.kill()])
  }
})
