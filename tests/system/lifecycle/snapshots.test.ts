/** Snapshots and forks of sandboxes with the SDK. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { startStatefulProgram } from '../stateful-program.ts'

const who = 'echo "$(hostname) $E2B_SANDBOX_ID $GIVEN"'

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
      const version = (text: string) => sandbox.files.write('/home/user/version', text)
      await version('1')
      const first = await sandbox.createSnapshot({ name: 'work' })
      await version('2')
      const second = await sandbox.createSnapshot({ name: 'work:newer' })
      const plain = await Sandbox.createSnapshot(sandbox.sandboxId, connection)
      const [namespace] = first.snapshotId.split('/')
      assert.deepEqual(
        [first, second],
        [
          { snapshotId: `${namespace}/work:default`, names: [`${namespace}/work`] },
          { snapshotId: `${namespace}/work:newer`, names: [`${namespace}/work`] },
        ],
      )

      const pages = Sandbox.listSnapshots({ ...connection, limit: 2 })
      const listed = [...(await pages.nextItems()), ...(await pages.nextItems())]
      assert.equal(pages.hasNext, false)
      assert.deepEqual(listed, [plain, second, first])
      const { sandboxId } = sandbox
      const own = await Sandbox.listSnapshots({
        ...connection,
        sandboxId,
        name: 'work',
      }).nextItems()
      assert.deepEqual(own, [second, first])

      const versions = ['work', 'work:newer', plain.snapshotId].map(async (name) => {
        const made = await Sandbox.create(name, connection)
        const text = await made.files.read('/home/user/version')
        assert.equal(await made.kill(), true)
        return text
      })
      assert.deepEqual(await Promise.all(versions), ['1', '2', '2'])

      assert.equal(await Sandbox.deleteSnapshot(plain.snapshotId, connection), true)
      assert.equal(await Sandbox.deleteSnapshot(plain.snapshotId, connection), false)
      await assert.rejects(Sandbox.create(plain.snapshotId, connection), /404/)
      assert.equal(await Sandbox.deleteSnapshot('work', connection), true)
      assert.deepEqual(await sandbox.listSnapshots().nextItems(), [])
      await sandbox.kill()
    })

    if (runtime === 'gvisor') {
      test('sandboxes created from a snapshot continue from it, also when the original is gone', async () => {
        const original = await Sandbox.create({ ...connection, envs: { GIVEN: 'to the first' } })
        const program = await startStatefulProgram(installation, original)
        const { pid, sha256 } = await program.ask()
        const { endAt } = await original.getInfo()
        const { snapshotId, names } = await original.createSnapshot()
        assert.match(snapshotId, /^[a-z0-9]{20}:default$/)
        assert.deepEqual(names, [])

        // The original keeps running, with new connections and an unchanged end time.
        assert.deepEqual((await original.getInfo()).endAt, endAt)
        assert.equal((await program.ask()).count, 2)
        assert.equal(await original.kill(), true)

        const envs = { GIVEN: 'to the second' }
        const copies = await Promise.all([
          Sandbox.create(snapshotId, connection),
          Sandbox.create(snapshotId, { ...connection, envs }),
        ])
        const told = await Promise.all(copies.map(({ sandboxId }) => program.ask(sandboxId)))
        assert.deepEqual(
          told.map(({ random: _random, ...rest }) => rest),
          Array.from(copies, () => ({ pid, sha256, count: 2 })),
        )
        const given = ['to the first', 'to the second']
        for (const [index, copy] of copies.entries()) {
          const { stdout } = await copy.commands.run(`${who}; cat ${program.file}`)
          const { sandboxId } = copy
          assert.equal(stdout, `${sandboxId} ${sandboxId} ${given[index]}\n1\n2\n`)
        }
        await Promise.all(copies.map((copy) => copy.kill()))
        assert.equal(await Sandbox.deleteSnapshot(snapshotId, connection), true)
      })

      test('forks run next to their original, each with its own name, token, address and random state', async () => {
        const metadata = { run: randomUUID() }
        const envs = { GIVEN: 'to all' }
        const original = await Sandbox.create({ ...connection, metadata, envs })
        const program = await startStatefulProgram(installation, original)
        const { pid, sha256 } = await program.ask()
        const { endAt } = await original.getInfo()

        const results = await original.fork({ ...connection, count: 3, timeoutMs: 120_000 })
        const forks = results.filter((result) => result instanceof Sandbox)
        assert.equal(forks.length, 3, results.filter((result) => result instanceof Error).join())
        assert.deepEqual((await original.getInfo()).endAt, endAt)

        const family = [original, ...forks]
        const ids = family.map(({ sandboxId }) => sandboxId)
        const told = await Promise.all(ids.map((id) => program.ask(id)))
        assert.deepEqual(
          told.map(({ random: _random, ...rest }) => rest),
          ids.map(() => ({ pid, sha256, count: 2 })),
        )
        const outputs = await Promise.all(family.map((each) => each.commands.run(who)))
        assert.deepEqual(
          outputs.map(({ stdout }) => stdout),
          ids.map((id) => `${id} ${id} to all\n`),
        )
        const kinds = [
          ids,
          told.map(({ random }) => random),
          await Promise.all(family.map(randomOf)),
          await Promise.all(family.map(addressOf)),
        ]
        assert.deepEqual(
          kinds.map((values) => new Set(values).size),
          [4, 4, 4, 4],
        )
        for (const fork of forks) {
          const info = await fork.getInfo()
          const lifeMs = info.endAt.getTime() - info.startedAt.getTime()
          assert.deepEqual([info.metadata, info.name, lifeMs], [metadata, 'base', 120_000])
        }

        // Original and forks are independent now.
        await original.files.write(program.file, 'mine alone')
        const [first] = forks
        assert.equal(await first?.files.read(program.file), '1\n2\n')
        assert.equal(await statusBy(installation, { token: original, to: original }), 200)
        assert.equal(await statusBy(installation, { token: original, to: first }), 401)
        await Promise.all(family.map((each) => each.kill()))
        assert.deepEqual(await Sandbox.listSnapshots(connection).nextItems(), [])
      })
    }

    if (runtime === 'runc') {
      test('copies begin anew from the files of their original', async () => {
        const original = await Sandbox.create(connection)
        const program = await startStatefulProgram(installation, original)
        await program.ask()
        const { snapshotId } = await original.createSnapshot()
        const made = await Sandbox.create(snapshotId, connection)
        const [fork] = await original.fork({ ...connection })
        if (!(fork instanceof Sandbox)) throw new Error('no fork', { cause: fork })
        for (const copy of [made, fork]) {
          const { stdout } = await copy.commands.run(
            'hostname; cat counts; pgrep python3 || echo no',
          )
          assert.equal(stdout, `${copy.sandboxId}\n1\nno\n`)
        }
        assert.equal((await program.ask()).count, 2)
        await Promise.all([original, made, fork].map((each) => each.kill()))
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
async function statusBy(
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
