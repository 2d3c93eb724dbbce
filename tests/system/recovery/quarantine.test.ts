/** Records on the node that are damaged or from a newer release: the node keeps their files, and all else works. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox, Template } from 'e2b'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'

type JsonRecord = Record<string, unknown>

/** Changes a record and drops its checksum, as the first releases wrote it: the checksum must not cause the refusal. */
function rewrite(text: string, change: (record: JsonRecord) => JsonRecord): string {
  const { version: _version, checksum: _checksum, ...record }: JsonRecord = JSON.parse(text)
  return JSON.stringify(change(record))
}

/** Each kind of record has one of these fields. */
const fields = ['disk', 'snapshotId', 'setup', 'key']

const damageKinds: Readonly<Record<string, (text: string) => string>> = {
  'an unknown version': (text) => text.replace('"version":1', '"version":2'),
  'a missing field': (text) =>
    rewrite(text, (record) =>
      Object.fromEntries(Object.entries(record).filter(([name]) => !fields.includes(name))),
    ),
  'a wrong type': (text) =>
    rewrite(text, (record) => ({
      ...record,
      ...Object.fromEntries(fields.filter((name) => name in record).map((name) => [name, 7])),
    })),
  truncation: (text) => text.slice(0, 40),
  'a flipped bit': (text) => {
    const bytes = Buffer.from(text)
    const middle = bytes.length >> 1
    bytes[middle] = (bytes[middle] ?? 0) ^ 1
    return bytes.toString('latin1')
  },
}

suite('records that cannot be read on gvisor', { timeout: 600_000 }, () => {
  let installation: Installation
  let connection: Installation['connection']

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '256' })
    connection = installation.connection
  })
  after(() => installation[Symbol.asyncDispose]())

  test('damaged records are quarantined and listed, and work again once they are repaired', async (t) => {
    const paused = await createSandbox()
    const running = await createSandbox()
    const intactSandbox = await createSandbox()
    const { dataDir } = installation
    const layerFiles = () => filesIn(join(dataDir, 'steps'), (name) => `${name}.json`)
    // The catalogue's templates have layers too, where they are installed.
    const earlierLayers = new Set(await layerFiles())
    const template = Template().fromBaseImage().runCmd('echo built > /home/user/built')
    await Template.build(template, 'damaged', { ...connection, memoryMB: 256 })
    const { snapshotId } = await intactSandbox.sandbox.createSnapshot()
    await paused.sandbox.pause()
    // A resume gives the sandbox another cell.
    const findRecords = async () => [
      await cellFile(dataDir, paused.sandbox.sandboxId),
      await cellFile(dataDir, running.sandbox.sandboxId),
      ...(await filesIn(join(dataDir, 'snapshots'), (name) => join(name, 'snapshot.json'))),
      ...(await filesIn(join(dataDir, 'templates'), (name) => name)),
      ...(await layerFiles()).filter((path) => !earlierLayers.has(path)),
    ]

    for (const [damageName, damage] of Object.entries(damageKinds)) {
      await t.test(damageName, async () => {
        await installation.crash()
        const files = await findRecords()
        assert.equal(files.length, 5, files.join(' '))
        const originalContents = await Promise.all(files.map((path) => readFile(path)))
        for (const path of files) await writeFile(path, damage(await readFile(path, 'utf8')))
        const damagedContents = await Promise.all(files.map((path) => readFile(path)))
        await installation.start()

        const status = JSON.parse(await run(atoll, ['status', '--json'], installation))
        assert.deepEqual(
          status.quarantined.map(({ kind }: { kind: string }) => kind).toSorted(),
          ['layer', 'sandbox', 'sandbox', 'snapshot', 'template'],
          JSON.stringify(status),
        )
        assert.ok(status.quarantined.every(({ reason }: { reason: string }) => reason.length > 5))
        assert.deepEqual(await states([paused, running, intactSandbox]), [
          'paused',
          'running',
          'running',
        ])
        await assert.rejects(paused.sandbox.connect(), /409.*kept/s)
        await assert.rejects(Sandbox.create(snapshotId, connection), /kept/)
        await assert.rejects(Sandbox.create('damaged', connection), /kept/)
        assert.equal(await readSecret(intactSandbox.sandbox), intactSandbox.secret)
        const newSandbox = await Sandbox.create(connection)
        assert.equal((await newSandbox.commands.run('echo well')).stdout, 'well\n')
        await newSandbox.kill()
        assert.deepEqual(await Promise.all(files.map((path) => readFile(path))), damagedContents)

        await installation.crash()
        for (const [index, path] of files.entries()) {
          await writeFile(path, originalContents[index] ?? assert.fail())
        }
        await installation.start()
        assert.equal(await readSecret(running.sandbox), running.secret)
        await paused.sandbox.connect({ timeoutMs: 600_000 })
        assert.equal(await readSecret(paused.sandbox), paused.secret)
        await paused.sandbox.pause()
        const copy = await Sandbox.create(snapshotId, connection)
        assert.equal(await readSecret(copy), intactSandbox.secret)
        const fromTemplate = await Sandbox.create('damaged', connection)
        assert.equal(await fromTemplate.files.read('/home/user/built'), 'built\n')
        await Promise.all([copy.kill(), fromTemplate.kill()])
      })
    }
  })

  test('the doctor lists quarantined records; a deleted sandbox is removed once its record is readable', async () => {
    const { sandbox } = await createSandbox()
    await sandbox.pause()
    const path = await cellFile(installation.dataDir, sandbox.sandboxId)
    await installation.crash()
    const originalText = await readFile(path, 'utf8')
    await writeFile(path, originalText.replace('"version":1', '"version":7'))
    await installation.start()
    const { stdout } = await tryRun(atoll, ['doctor'], installation)
    assert.match(stdout, /records +sandbox .* cannot be read: it has format 7/)
    await sandbox.kill()
    assert.ok(await stat(path))
    await installation.crash()
    await writeFile(path, originalText)
    await installation.start()
    const isGone = () =>
      stat(path).then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
      )
    await waitFor('the deletion', isGone, { timeoutMs: 300_000, intervalMs: 100 })
  })

  test('a lost store is refused before the node removes anything', async () => {
    const pausedSandbox = await createSandbox()
    await pausedSandbox.sandbox.pause()
    assert.equal(await installation.interrupt(), 0)
    const movedStore = join(installation.dataDir, 'lost')
    const store = join(installation.dataDir, 'atoll.db')
    await run('mv', [store, movedStore])
    await assert.rejects(installation.start(), /does not belong to/)
    await run('mv', [movedStore, store])
    await installation.start()
    await pausedSandbox.sandbox.connect()
    assert.equal(await readSecret(pausedSandbox.sandbox), pausedSandbox.secret)
    await pausedSandbox.sandbox.kill()
  })

  test('a store of a newer release is refused before the node removes anything', async () => {
    const pausedSandbox = await createSandbox()
    await pausedSandbox.sandbox.pause()
    const path = await cellFile(installation.dataDir, pausedSandbox.sandbox.sandboxId)
    assert.equal(await installation.interrupt(), 0)
    const sql = (statement: string) =>
      run(process.execPath, [
        '--disable-warning=ExperimentalWarning',
        '-e',
        `new (require('node:sqlite').DatabaseSync)(process.argv[1]).exec(process.argv[2])`,
        join(installation.dataDir, 'atoll.db'),
        statement,
      ])
    await sql('update schema_version set version = version + 1000')
    await assert.rejects(installation.start(), /start the newer Atoll/)
    assert.ok(await stat(path))
    await sql('update schema_version set version = version - 1000')
    await installation.start()
    await pausedSandbox.sandbox.connect()
    assert.equal(await readSecret(pausedSandbox.sandbox), pausedSandbox.secret)
    await pausedSandbox.sandbox.kill()
  })

  interface SecretSandbox {
    readonly sandbox: Sandbox
    readonly secret: string
  }

  /** Creates a sandbox with a secret in its memory alone. */
  async function createSandbox(): Promise<SecretSandbox> {
    const sandbox = await Sandbox.create({ ...connection, timeoutMs: 1_200_000 })
    const secret = randomUUID()
    await sandbox.files.write('/dev/shm/secret', secret)
    return { sandbox, secret }
  }

  async function readSecret(sandbox: Sandbox): Promise<string> {
    return sandbox.files.read('/dev/shm/secret')
  }

  async function states(sandboxes: readonly SecretSandbox[]): Promise<string[]> {
    return Promise.all(
      sandboxes.map(
        async ({ sandbox }) => (await Sandbox.getInfo(sandbox.sandboxId, connection)).state,
      ),
    )
  }
})

async function cellFile(dataDir: string, sandboxId: string): Promise<string> {
  const cellsDir = join(dataDir, 'cells')
  const names = await readdir(cellsDir)
  // A folder whose name begins with a dot is being removed.
  for (const name of names.filter((one) => !one.startsWith('.'))) {
    const path = join(cellsDir, name, 'cell.json')
    // The cell of another sandbox may be removed meanwhile.
    const text = await readFile(path, 'utf8').catch(() => '')
    if (text.includes(`"sandboxId":"${sandboxId}"`)) return path
  }
  return assert.fail(`no cell has sandbox ${sandboxId}`)
}

/** Returns the record file of each entry of a folder. Entries without a record file are skipped. */
async function filesIn(dir: string, record: (name: string) => string): Promise<string[]> {
  const names = (await readdir(dir).catch(() => [])).filter((name) => !name.startsWith('.'))
  const paths = [...new Set(names.map((name) => join(dir, record(name))))]
  const existingPaths = await Promise.all(
    paths.map(async (path) => ((await stat(path).catch(() => undefined))?.isFile() ? [path] : [])),
  )
  return existingPaths.flat()
}
