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
    // Packets take the same path under both runtimes, and runc keeps no memory: gVisor runs all tests, runc some.
    const isRunc = runtime === 'runc'
    const resources = new AsyncDisposableStack()
    let installation: Installation
    let outside: Outside
    let sandbox: Sandbox
    let allTraffic: string[]

    before(async () => {
      outside = resources.use(await openOutside('11.22.34', []))
      installation = resources.use(await install({ ATOLL_RUNTIME: runtime }))
      sandbox = await createSandbox()
      allTraffic = ['0.0.0.0/0']
    })
    after(() => resources.disposeAsync())

    const createSandbox = (options: SandboxOpts = {}) =>
      Sandbox.create('base', { ...installation.connection, timeoutMs: 600_000, ...options })

    /** Returns which of the two addresses answer over TCP and UDP. */
    async function listReachable(from: Sandbox): Promise<string[]> {
      const targets = [outside.publicAddress, outside.otherAddress].flatMap((address) => [
        ['tcp', address, outside.port],
        ['udp', address, outside.port],
      ])
      const answers = await python(from, attempts.reach, targets)
      assert.ok(Array.isArray(answers))
      return targets
        .filter((_, index) => answers[index] !== null)
        .map((target) => `${target[0]} ${target[1]}`)
    }
    const tcpAndUdp = (address: string) => [`tcp ${address}`, `udp ${address}`]

    test('deny one address and no other', async () => {
      const restricted = await createSandbox({ network: { denyOut: [outside.publicAddress] } })
      assert.deepEqual(await listReachable(restricted), tcpAndUdp(outside.otherAddress))
      const { network } = await restricted.getInfo()
      assert.deepEqual(network?.denyOut, [outside.publicAddress])
      await restricted.kill()
    })

    test('allow one address while all others are denied', { skip: isRunc }, async () => {
      const restricted = await createSandbox({
        network: { allowOut: [outside.otherAddress], denyOut: ({ allTraffic: all }) => [all] },
      })
      assert.deepEqual(await listReachable(restricted), tcpAndUdp(outside.otherAddress))
      await restricted.kill()
    })

    test('deny the internet except allowed addresses, and never envd', async () => {
      const offline = await createSandbox({ allowInternetAccess: false })
      assert.deepEqual(await listReachable(offline), [])
      assert.equal((await offline.getInfo()).allowInternetAccess, false)
      await offline.updateNetwork({ allowInternetAccess: false, allowOut: [outside.publicAddress] })
      assert.deepEqual(await listReachable(offline), tcpAndUdp(outside.publicAddress))
      await offline.kill()
    })

    test('cannot allow a closed range', { skip: isRunc }, async () => {
      await sandbox.updateNetwork({ allowOut: allTraffic })
      const { stdout } = await shell(sandbox, 'ip route show default')
      const gateway = /via ([\d.]+)/.exec(stdout)?.[1] ?? assert.fail(stdout)
      const port = Number(new URL(installation.url).port)
      assert.deepEqual(await python(sandbox, attempts.reach, [['tcp', gateway, port]]), [null])
    })

    test('are replaced as a whole while the sandbox runs', async () => {
      await sandbox.updateNetwork({ denyOut: [outside.publicAddress] })
      assert.deepEqual(await listReachable(sandbox), tcpAndUdp(outside.otherAddress))
      await sandbox.updateNetwork({ denyOut: [outside.otherAddress] })
      assert.deepEqual(await listReachable(sandbox), tcpAndUdp(outside.publicAddress))
      await sandbox.updateNetwork({})
      assert.equal((await listReachable(sandbox)).length, 4)
    })

    test('refuse a denied connection at once, and reset an open connection', async () => {
      await sandbox.updateNetwork({})
      const client = await sandbox.commands.run(
        `python3 -uc '${talkProgram}' ${outside.publicAddress} ${outside.echoPort}`,
        { background: true, stdin: true, timeoutMs: 120_000 },
      )
      await sandbox.commands.sendStdin(client.pid, 'before\n')
      await waitFor('the echo', () => client.stdout.includes('heard before'))
      await sandbox.updateNetwork({ denyOut: allTraffic })
      await sandbox.commands.sendStdin(client.pid, 'after\n')
      await waitFor('the reset', () => client.stdout.includes('reset'))
      assert.ok(!client.stdout.includes('heard after'))
      await client.kill()
      const { stdout } = await shell(
        sandbox,
        `python3 -c '${refusedProgram}' ${outside.publicAddress} ${outside.port}`,
      )
      assert.equal(stdout.trim(), 'refused')
      await sandbox.updateNetwork({})
    })

    test('survive a crash of the server', { skip: isRunc }, async () => {
      await sandbox.updateNetwork({ denyOut: [outside.publicAddress] })
      await installation.crash()
      await installation.start()
      assert.deepEqual(await listReachable(sandbox), tcpAndUdp(outside.otherAddress))
    })

    test(
      'apply to copies and after a pause, from the first packet on',
      { skip: isRunc },
      async () => {
        const network = { allowOut: [outside.otherAddress], denyOut: allTraffic }
        await sandbox.updateNetwork(network)
        // Sends without a break, so that packets would arrive outside in a moment without rules.
        const destination = `${outside.publicAddress} ${outside.port}`
        await shell(sandbox, `nohup python3 -c '${senderProgram}' ${destination} >/dev/null 2>&1 &`)
        await sandbox.pause()
        sandbox = await Sandbox.connect(sandbox.sandboxId, installation.connection)
        const { snapshotId } = await sandbox.createSnapshot()
        const copy = await Sandbox.create(snapshotId, { ...installation.connection, network })
        const [fork] = await sandbox.fork()
        assert.ok(fork instanceof Sandbox)
        for (const target of [sandbox, copy, fork]) {
          assert.deepEqual(await listReachable(target), tcpAndUdp(outside.otherAddress))
        }
        assert.ok(!outside.datagrams().includes('from the dark'))
        await copy.updateNetwork({})
        await waitFor('a datagram of the sender', () =>
          outside.datagrams().includes('from the dark'),
        )
      },
    )
  })
}

/** Sends each line of stdin and prints each reply. */
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
