import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import type { SandboxOpts } from 'e2b'
import * as attempts from '../attempts.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { openOutside } from './outside.ts'
import type { Outside } from './outside.ts'
import { python, runtimes, shell } from '../shell.ts'

/** Egress rules with addresses, checked with connections to a network outside the host. */
for (const runtime of runtimes) {
  describe(`rules of a sandbox under ${runtime}`, { concurrency: 1 }, () => {
    // The way of a packet is the same; only one of them keeps memory.
    const isShort = runtime === 'runc'
    const made = new AsyncDisposableStack()
    let installation: Installation
    let outside: Outside
    let sandbox: Sandbox
    let allTraffic: string[]

    before(async () => {
      outside = made.use(await openOutside('11.22.34', []))
      installation = made.use(await install({ ATOLL_RUNTIME: runtime }))
      sandbox = await open()
      allTraffic = ['0.0.0.0/0']
    })
    after(() => made.disposeAsync())

    const open = (options: SandboxOpts = {}) =>
      Sandbox.create('base', { ...installation.connection, timeoutMs: 600_000, ...options })

    /** Returns which of the two addresses answer over TCP and UDP. */
    async function reached(from: Sandbox): Promise<string[]> {
      const ways = [outside.publicAddress, outside.otherAddress].flatMap((address) => [
        ['tcp', address, outside.port],
        ['udp', address, outside.port],
      ])
      const answers = await python(from, attempts.reach, ways)
      assert.ok(Array.isArray(answers))
      return ways.filter((_, at) => answers[at] !== null).map((way) => `${way[0]} ${way[1]}`)
    }
    const both = (address: string) => [`tcp ${address}`, `udp ${address}`]

    test('deny one address and no other', async () => {
      const denied = await open({ network: { denyOut: [outside.publicAddress] } })
      assert.deepEqual(await reached(denied), both(outside.otherAddress))
      const { network } = await denied.getInfo()
      assert.deepEqual(network?.denyOut, [outside.publicAddress])
      await denied.kill()
    })

    test('allow one address where all is denied', { skip: isShort }, async () => {
      const few = await open({
        network: { allowOut: [outside.otherAddress], denyOut: ({ allTraffic: all }) => [all] },
      })
      assert.deepEqual(await reached(few), both(outside.otherAddress))
      await few.kill()
    })

    test('deny the internet except allowed addresses, and never envd', async () => {
      const none = await open({ allowInternetAccess: false })
      assert.deepEqual(await reached(none), [])
      assert.equal((await none.getInfo()).allowInternetAccess, false)
      await none.updateNetwork({ allowInternetAccess: false, allowOut: [outside.publicAddress] })
      assert.deepEqual(await reached(none), both(outside.publicAddress))
      await none.kill()
    })

    test('cannot allow a closed range', { skip: isShort }, async () => {
      await sandbox.updateNetwork({ allowOut: allTraffic })
      const { stdout } = await shell(sandbox, 'ip route show default')
      const gateway = /via ([\d.]+)/.exec(stdout)?.[1] ?? assert.fail(stdout)
      const port = Number(new URL(installation.url).port)
      assert.deepEqual(await python(sandbox, attempts.reach, [['tcp', gateway, port]]), [null])
    })

    test('are replaced as a whole while the sandbox runs', async () => {
      await sandbox.updateNetwork({ denyOut: [outside.publicAddress] })
      assert.deepEqual(await reached(sandbox), both(outside.otherAddress))
      await sandbox.updateNetwork({ denyOut: [outside.otherAddress] })
      assert.deepEqual(await reached(sandbox), both(outside.publicAddress))
      await sandbox.updateNetwork({})
      assert.equal((await reached(sandbox)).length, 4)
    })

    test('refuse a denied connection at once, and end one that is open', async () => {
      await sandbox.updateNetwork({})
      const talk = await sandbox.commands.run(
        `python3 -uc '${talkProgram}' ${outside.publicAddress} ${outside.echoPort}`,
        { background: true, stdin: true, timeoutMs: 120_000 },
      )
      await sandbox.commands.sendStdin(talk.pid, 'before\n')
      await waitFor('the echo', () => talk.stdout.includes('heard before'))
      await sandbox.updateNetwork({ denyOut: allTraffic })
      await sandbox.commands.sendStdin(talk.pid, 'after\n')
      await waitFor('the end', () => talk.stdout.includes('reset'))
      assert.ok(!talk.stdout.includes('heard after'))
      await talk.kill()
      const { stdout } = await shell(
        sandbox,
        `python3 -c '${refusedProgram}' ${outside.publicAddress} ${outside.port}`,
      )
      assert.equal(stdout.trim(), 'refused')
      await sandbox.updateNetwork({})
    })

    test('outlive a crash of the server', { skip: isShort }, async () => {
      await sandbox.updateNetwork({ denyOut: [outside.publicAddress] })
      await installation.crash()
      await installation.start()
      assert.deepEqual(await reached(sandbox), both(outside.otherAddress))
    })

    test(
      'hold for copies and after a pause from the first packet on',
      { skip: isShort },
      async () => {
        const network = { allowOut: [outside.otherAddress], denyOut: allTraffic }
        await sandbox.updateNetwork(network)
        // Sends without a break, so that packets would arrive outside in a moment without rules.
        const target = `${outside.publicAddress} ${outside.port}`
        await shell(sandbox, `nohup python3 -c '${senderProgram}' ${target} >/dev/null 2>&1 &`)
        await sandbox.pause()
        sandbox = await Sandbox.connect(sandbox.sandboxId, installation.connection)
        const { snapshotId } = await sandbox.createSnapshot()
        const copy = await Sandbox.create(snapshotId, { ...installation.connection, network })
        const [fork] = await sandbox.fork()
        assert.ok(fork instanceof Sandbox)
        for (const each of [sandbox, copy, fork]) {
          assert.deepEqual(await reached(each), both(outside.otherAddress))
        }
        assert.ok(!outside.datagrams().includes('from the dark'))
        await copy.updateNetwork({})
        await waitFor('what it sent all along', () => outside.datagrams().includes('from the dark'))
      },
    )
  })
}

/** Sends each line of its input and says what comes back. */
const talkProgram = `
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as s:
    for line in sys.stdin:
        try:
            s.send(line.encode())
            print("heard", s.recv(100).decode().strip(), flush=True)
        except ConnectionResetError:
            print("reset", flush=True)
            break
`

const refusedProgram = `
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
except ConnectionRefusedError:
    print("refused")
`

const senderProgram = `
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try:
        s.sendto(b"from the dark", (sys.argv[1], int(sys.argv[2])))
    except OSError:
        pass
    time.sleep(0.001)
`
