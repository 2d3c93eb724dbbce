/** Snapshots and forks of sandboxes with the SDK. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { startStatefulProgram } from '../stateful-program.ts'

const printIdentity = 'echo "$(hostname) $E2B_SANDBOX_ID $GIVEN"'

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`snapshots and forks on ${runtime}`, () => {
    let installation: Installation
    let connection: Installation['connection']

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime, ATOLL_BASE_MEMORY_MB: '256' })
      connection = installation.connection
    })
    after(() => installation[Symbol.asyncDispose]())

    test('snapshots have names and tags, are listed newest first, and deleted', async () => {
      const sandbox = await Sandbox.create(connection)
      const writeVersion = (text: string) => sandbox.files.write('/home/user/version', text)
      await writeVersion('1')
      const firstSnapshot = await sandbox.createSnapshot({ name: 'work' })
      await writeVersion('2')
      const secondSnapshot = await sandbox.createSnapshot({ name: 'work:newer' })
      const unnamedSnapshot = await Sandbox.createSnapshot(sandbox.sandboxId, connection)
      const [namespace] = firstSnapshot.snapshotId.split('/')
      assert.deepEqual(
        [firstSnapshot, secondSnapshot],
        [
          { snapshotId: `${namespace}/work:default`, names: [`${namespace}/work`] },
          { snapshotId: `${namespace}/work:newer`, names: [`${namespace}/work`] },
        ],
      )

      const pages = Sandbox.listSnapshots({ ...connection, limit: 2 })
      const snapshots = [...(await pages.nextItems()), ...(await pages.nextItems())]
      assert.equal(pages.hasNext, false)
      assert.deepEqual(snapshots, [unnamedSnapshot, secondSnapshot, firstSnapshot])
      const { sandboxId } = sandbox
      const workSnapshots = await Sandbox.listSnapshots({
        ...connection,
        sandboxId,
        name: 'work',
      }).nextItems()
      assert.deepEqual(workSnapshots, [secondSnapshot, firstSnapshot])

      const versions = ['work', 'work:newer', unnamedSnapshot.snapshotId].map(async (name) => {
        const copy = await Sandbox.create(name, connection)
        const text = await copy.files.read('/home/user/version')
        assert.equal(await copy.kill(), true)
        return text
      })
      assert.deepEqual(await Promise.all(versions), ['1', '2', '2'])

      assert.equal(await Sandbox.deleteSnapshot(unnamedSnapshot.snapshotId, connection), true)
      assert.equal(await Sandbox.deleteSnapshot(unnamedSnapshot.snapshotId, connection), false)
      await assert.rejects(Sandbox.create(unnamedSnapshot.snapshotId, connection), /404/)
      assert.equal(await Sandbox.deleteSnapshot('work', connection), true)
      assert.deepEqual(await sandbox.listSnapshots().nextItems(), [])
      await sandbox.kill()
    })

    if (runtime === 'gvisor') {
      test('sandboxes created from a snapshot continue its processes, also after a kill of the original', async () => {
        const original = await Sandbox.create({ ...connection, envs: { GIVEN: 'to the first' } })
        const program = await startStatefulProgram(installation, original)
        const { pid, sha256 } = await program.request()
        const { endAt } = await original.getInfo()
        const { snapshotId, names } = await original.createSnapshot()
        assert.match(snapshotId, /^[a-z0-9]{20}:default$/)
        assert.deepEqual(names, [])

        // The original keeps running, with new connections and an unchanged end time.
        assert.deepEqual((await original.getInfo()).endAt, endAt)
        assert.equal((await program.request()).count, 2)
        assert.equal(await original.kill(), true)

        const envs = { GIVEN: 'to the second' }
        const copies = await Promise.all([
          Sandbox.create(snapshotId, connection),
          Sandbox.create(snapshotId, { ...connection, envs }),
        ])
        const states = await Promise.all(copies.map(({ sandboxId }) => program.request(sandboxId)))
        assert.deepEqual(
          states.map(({ random: _random, ...state }) => state),
          Array.from(copies, () => ({ pid, sha256, count: 2 })),
        )
        const givenValues = ['to the first', 'to the second']
        for (const [index, copy] of copies.entries()) {
          const { stdout } = await copy.commands.run(`${printIdentity}; cat ${program.file}`)
          const { sandboxId } = copy
          assert.equal(stdout, `${sandboxId} ${sandboxId} ${givenValues[index]}\n1\n2\n`)
        }
        await Promise.all(copies.map((copy) => copy.kill()))
        assert.equal(await Sandbox.deleteSnapshot(snapshotId, connection), true)
      })

      test('forks run next to their original, each with its own name, token, address and random state', async () => {
        const metadata = { run: randomUUID() }
        const envs = { GIVEN: 'to all' }
        const original = await Sandbox.create({ ...connection, metadata, envs })
        const program = await startStatefulProgram(installation, original)
        const { pid, sha256 } = await program.request()
        const { endAt } = await original.getInfo()

        const results = await original.fork({ ...connection, count: 3, timeoutMs: 120_000 })
        const forks = results.filter((result) => result instanceof Sandbox)
        assert.equal(forks.length, 3, results.filter((result) => result instanceof Error).join())
        assert.deepEqual((await original.getInfo()).endAt, endAt)

        const sandboxes = [original, ...forks]
        const ids = sandboxes.map(({ sandboxId }) => sandboxId)
        const states = await Promise.all(ids.map((id) => program.request(id)))
        assert.deepEqual(
          states.map(({ random: _random, ...state }) => state),
          ids.map(() => ({ pid, sha256, count: 2 })),
        )
        const outputs = await Promise.all(
          sandboxes.map((sandbox) => sandbox.commands.run(printIdentity)),
        )
        assert.deepEqual(
          outputs.map(({ stdout }) => stdout),
          ids.map((id) => `${id} ${id} to all\n`),
        )
        const identities = [
          ids,
          states.map(({ random }) => random),
          await Promise.all(sandboxes.map(randomOf)),
          await Promise.all(sandboxes.map(addressOf)),
        ]
        assert.deepEqual(
          identities.map((values) => new Set(values).size),
          [4, 4, 4, 4],
        )
        for (const fork of forks) {
          const info = await fork.getInfo()
          const lifeMs = info.endAt.getTime() - info.startedAt.getTime()
          assert.deepEqual([info.metadata, info.name, lifeMs], [metadata, 'base', 120_000])
        }

        // Original and forks are independent now.
        await original.files.write(program.file, 'mine alone')
        const [firstFork] = forks
        assert.equal(await firstFork?.files.read(program.file), '1\n2\n')
        assert.equal(await envdStatus(installation, { token: original, to: original }), 200)
        assert.equal(await envdStatus(installation, { token: original, to: firstFork }), 401)
        await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
        assert.deepEqual(await Sandbox.listSnapshots(connection).nextItems(), [])
      })
    }

    if (runtime === 'runc') {
      test('a snapshot and a fork boot from the files of the original', async () => {
        const original = await Sandbox.create(connection)
        const program = await startStatefulProgram(installation, original)
        await program.request()
        const { snapshotId } = await original.createSnapshot()
        const restored = await Sandbox.create(snapshotId, connection)
        const [fork] = await original.fork({ ...connection })
        if (!(fork instanceof Sandbox)) throw new Error('no fork', { cause: fork })
        for (const copy of [restored, fork]) {
          const { stdout } = await copy.commands.run(
            'hostname; cat counts; pgrep python3 || echo no',
          )
          assert.equal(stdout, `${copy.sandboxId}\n1\nno\n`)
        }
        assert.equal((await program.request()).count, 2)
        await Promise.all([original, restored, fork].map((sandbox) => sandbox.kill()))
        assert.equal(await Sandbox.deleteSnapshot(snapshotId, connection), true)
      })
    }
  })
}

async function addressOf(sandbox: Sandbox): Promise<string> {
  const { stdout } = await sandbox.commands.run('ip -4 -o addr show | grep -v 127.0.0.1')
  return /inet ([\d.]+)/.exec(stdout)?.[1] ?? stdout
}

async function randomOf(sandbox: Sandbox): Promise<string> {
  return (await sandbox.commands.run('head -c 16 /dev/urandom | base64')).stdout
}

/** Returns the status with which envd of the sandbox `to` answers a request with the token of another sandbox. */
async function envdStatus(
  { url }: Installation,
  { token, to }: { readonly token: Sandbox; readonly to: Sandbox | undefined },
): Promise<number> {
  const headers = {
    'E2b-Sandbox-Id': to?.sandboxId ?? '',
    'E2b-Sandbox-Port': '49983',
    'X-Access-Token': String(Reflect.get(token, 'envdAccessToken')),
  }
  const reply = await fetch(`${url}/files?path=/etc/hostname`, { headers })
  await reply.text()
  return reply.status
}
