/** Effects of a pause on connections, and on the programs that hold them. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { asyncioSource, nodeSource } from './connections-in-sandbox.ts'
import { cells, namesOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { openOutside } from '../network/outside.ts'
import type { Outside } from '../network/outside.ts'
import { startStatefulProgram } from '../stateful-program.ts'

const polling = { intervalMs: 100 }
const rounds = 3

const servers = {
  'a Node.js server': { command: 'exec node -e "$SERVER"', source: nodeSource },
  'a server on asyncio': { command: 'exec python3 -c "$SERVER"', source: asyncioSource },
}

suite('connections over a pause on gvisor', () => {
  const resources = new AsyncDisposableStack()
  let installation: Installation
  let outside: Outside

  before(async () => {
    // Each test process has its own network, since several may run at a time.
    outside = resources.use(await openOutside(`12.34.${process.pid % 256}`, []))
    installation = resources.use(await install({ ATOLL_RUNTIME: 'gvisor' }))
  })
  after(() => resources.disposeAsync())

  test('a pending outbound connection fails with EHOSTUNREACH', async () => {
    const sandbox = await Sandbox.create({ ...installation.connection, timeoutMs: 600_000 })
    const connectTo = async (port: number) => {
      const program = `rm -f /tmp/said; python3 -c '${callerSource}' ${outside.silentAddress} ${port}`
      const caller = await sandbox.commands.run(program, { background: true, timeoutMs: 0 })
      caller.wait().catch(() => {})
      await waitFor('the connection attempt to leave the host', async () => {
        const connections = await readFile('/proc/net/nf_conntrack', 'utf8')
        const pattern = `SYN_SENT src=\\S+ dst=${outside.silentAddress} sport=\\d+ dport=${port} `
        return new RegExp(pattern).test(connections)
      })
    }
    const readError = (target: Sandbox) =>
      waitFor(
        'the connection to fail',
        async () => (await target.files.read('/tmp/said').catch(() => '')) || false,
      )
    await connectTo(8080)
    const { snapshotId } = await sandbox.createSnapshot()
    assert.equal(await readError(sandbox), 'EHOSTUNREACH')
    await connectTo(8081)
    await sandbox.pause()
    await sandbox.connect()
    assert.equal(await readError(sandbox), 'EHOSTUNREACH')
    const copy = await Sandbox.create(snapshotId, installation.connection)
    assert.equal(await readError(copy), 'EHOSTUNREACH')
    await Promise.all([sandbox.kill(), copy.kill()])
  })

  for (const [name, { command, source }] of Object.entries(servers)) {
    test(`${name} notices the end of its connections and continues, pause after pause`, async () => {
      const sandbox = await Sandbox.create({ ...installation.connection, timeoutMs: 600_000 })
      const envs = {
        SERVER: source,
        PORT: '8000',
        FAR: `${outside.publicAddress}:${outside.echoPort}`,
      }
      const server = await sandbox.commands.run(command, { background: true, envs, timeoutMs: 0 })
      server.wait().catch(() => {})
      await waitFor('the server to listen', () => server.stdout === 'listening\n', polling)
      const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8000' }
      const request = async (path: string): Promise<ServerState> => {
        // A server that waits for a lost connection would never answer.
        const signal = AbortSignal.timeout(60_000)
        const reply = await fetch(`${installation.url}${path}`, { headers, signal })
        const body = await reply.text()
        if (reply.status !== 200) throw new Error(`answered ${reply.status}: ${body}`)
        return JSON.parse(body)
      }

      let count = 0
      for (let round = 1; round <= rounds; round += 1) {
        const dialState = await request('/dial')
        assert.deepEqual([dialState.count, dialState.open], [(count += 1), 1])
        const heldRequest = assert.rejects(request('/hold'))
        await waitFor('the request to arrive', async () => {
          count = (await request('/')).count
          return count >= dialState.count + 2
        })
        assert.equal(await sandbox.pause(), true)
        await heldRequest
        await sandbox.connect()
        const { ends, cpuMs } = await waitFor('the end of the connection', async () => {
          const state = await request('/')
          assert.equal(state.count, (count += 1))
          return state.open === 0 && state
        })
        assert.equal(ends.length, round, ends.join())
        const idleSince = Date.now()
        await waitFor('time to pass', () => Date.now() - idleSince > 1000)
        const laterState = await request('/')
        assert.equal(laterState.count, (count += 1))
        // A server that spins, because epoll reports a closed connection again and again, takes a whole core.
        assert.ok(
          laterState.cpuMs - cpuMs < 500,
          `the server used ${laterState.cpuMs - cpuMs} ms of a second`,
        )
      }
      await sandbox.kill()
    })
  }
})

suite('requests during a pause on gvisor', () => {
  let installation: Installation
  let names: Names

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor' })
    names = await namesOf(installation.dataDir)
  })
  after(() => installation[Symbol.asyncDispose]())

  test('are held, and served after the resume, if traffic resumes the sandbox', async () => {
    const { sandbox, program } = await createSandbox({ onTimeout: 'pause', autoResume: true })
    for (let round = 1; round <= rounds; round += 1) {
      const stateBefore = await program.request()
      const pause = sandbox.pause()
      await waitForPause(sandbox)
      const [first, second] = await Promise.all([program.request(), program.request()])
      assert.equal(await pause, true)
      const counts = [first.count, second.count].toSorted((a, b) => a - b)
      assert.deepEqual(counts, [stateBefore.count + 1, stateBefore.count + 2])
      assert.deepEqual([first.pid, first.sha256], [stateBefore.pid, stateBefore.sha256])
    }
    await sandbox.kill()
  })

  test('fail with "not found" while the sandbox stays paused', async () => {
    const { sandbox, program } = await createSandbox({ onTimeout: 'pause' })
    const pause = sandbox.pause()
    await waitForPause(sandbox)
    await assert.rejects(program.request(), /answered 502: .*The sandbox was not found/)
    assert.equal(await pause, true)
    await sandbox.connect()
    assert.equal((await program.request()).count, 1)
    await sandbox.kill()
  })

  async function createSandbox(lifecycle: {
    readonly onTimeout: 'pause'
    readonly autoResume?: boolean
  }) {
    const sandbox = await Sandbox.create({ ...installation.connection, lifecycle })
    // Writing this much memory takes a while.
    return { sandbox, program: await startStatefulProgram(installation, sandbox, { dataMb: 200 }) }
  }

  /** Waits until the pause has begun or ended. */
  async function waitForPause({ sandboxId }: Sandbox): Promise<void> {
    await waitFor(
      'the pause to begin',
      async () => {
        const allCells = await cells(names.dataDir)
        const phase = allCells.find(({ owner }) => owner === sandboxId)?.phase
        return phase === 'copying' || phase === 'paused'
      },
      { intervalMs: 5 },
    )
  }
})

interface ServerState {
  /** Requests so far, including this one. */
  readonly count: number
  /** Connections to the echo server that the program considers open. */
  readonly open: number
  /** How each closed connection ended. */
  readonly ends: readonly string[]
  readonly cpuMs: number
}

const callerSource = `
import errno, socket, sys
s = socket.socket()
try:
    s.connect((sys.argv[1], int(sys.argv[2])))
except OSError as error:
    open("/tmp/said", "w").write(errno.errorcode[error.errno])
`
