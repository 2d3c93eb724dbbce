import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startMicrosocks } from '@atoll/node/testing/microsocks'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import type { SandboxOpts } from 'e2b'
import { egressesOf, namesOf } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { openOutside } from './outside.ts'
import type { Outside } from './outside.ts'
import { runtimes, shell } from '../shell.ts'

/** Egress rules with names and proxies, checked with servers on a network outside the host. */
for (const runtime of runtimes) {
  describe(`names and proxies under ${runtime}`, { concurrency: 1 }, () => {
    const isRunc = runtime === 'runc'
    const resources = new AsyncDisposableStack()
    let installation: Installation
    let outside: Outside
    let sandbox: Sandbox
    let proxy: { address: string; username: string; password: string }

    before(async () => {
      outside = resources.use(await openOutside('11.22.35', []))
      const { publicAddress, otherAddress } = outside
      await outside.serveNames({ 'shop.example': publicAddress, 'else.example': otherAddress })
      const login = { username: 'somebody', password: 'hush' }
      proxy = { address: `${otherAddress}:1080`, ...login }
      resources.use(await startMicrosocks(outside.namespace, { port: 1080, ...login }))
      const dnsSettings = { ATOLL_NAMESERVERS: publicAddress }
      installation = resources.use(await install({ ATOLL_RUNTIME: runtime, ...dnsSettings }))
      sandbox = await createSandbox({ network: onlyShop })
    })
    after(() => resources.disposeAsync())

    const onlyShop = { allowOut: ['shop.example'], denyOut: ['0.0.0.0/0'] }
    const createSandbox = (options: SandboxOpts = {}) =>
      Sandbox.create('base', { ...installation.connection, timeoutMs: 600_000, ...options })

    /** Returns the answer of a URL: the address of the server, the requested name and the address of the client. */
    async function visit(from: Sandbox, url: string): Promise<string> {
      const { stdout } = await shell(from, `python3 -c '${visitProgram}' ${url}`)
      return stdout.trim()
    }

    const shopAnswer = () => `${outside.publicAddress} shop.example ${outside.hostAddress}`

    test('only allowed names are resolved and reached', async () => {
      assert.equal(await visit(sandbox, 'http://shop.example/'), shopAnswer())
      assert.equal(await visit(sandbox, 'http://else.example/'), 'failed')
      assert.equal(await visit(sandbox, `http://${outside.otherAddress}/`), 'failed')
      const { network } = await sandbox.getInfo()
      assert.deepEqual(network?.allowOut, ['shop.example'])
    })

    test('the rules do not apply to another sandbox', async () => {
      const unrestricted = await createSandbox()
      const expected = `${outside.otherAddress} else.example ${outside.hostAddress}`
      assert.equal(await visit(unrestricted, 'http://else.example/'), expected)
      await unrestricted.kill()
    })

    test('connections use the proxy transparently, and its password is never shown', async () => {
      await sandbox.updateNetwork({ egressProxy: proxy })
      const expected = `${outside.publicAddress} ${outside.publicAddress} ${outside.publicAddress}`
      assert.equal(await visit(sandbox, `http://${outside.publicAddress}/`), expected)
      const { network } = await sandbox.getInfo()
      assert.deepEqual(network?.egressProxy, { address: proxy.address, username: proxy.username })
      await sandbox.updateNetwork({ egressProxy: { ...proxy, password: 'wrong' } })
      assert.equal(await visit(sandbox, `http://${outside.publicAddress}/`), 'failed')
      await sandbox.updateNetwork({})
      assert.equal(await visit(sandbox, 'http://shop.example/'), shopAnswer())
    })

    test('connections and rules survive a crash of the server', async () => {
      await sandbox.updateNetwork(onlyShop)
      const client = await sandbox.commands.run(
        `python3 -uc '${talkProgram}' ${outside.publicAddress} ${outside.echoPort}`,
        { background: true, stdin: true, timeoutMs: 120_000 },
      )
      await waitFor('the echo', () => client.stdout.includes('heard GET'))
      await installation.crash()
      await installation.start()
      const reconnected = await Sandbox.connect(sandbox.sandboxId, installation.connection)
      const connecting = reconnected.commands.connect(client.pid, { timeoutMs: 120_000 })
      await reconnected.commands.sendStdin(client.pid, 'after the crash\n')
      const clientHandle = await connecting
      await waitFor('the echo', async () => {
        const { stdout } = await shell(reconnected, 'cat /tmp/heard')
        return stdout.includes('after the crash')
      })
      await clientHandle.kill()
      assert.equal(await visit(reconnected, 'http://else.example/'), 'failed')
      sandbox = reconnected
    })

    test('the rules stay in force when the egress process is killed', async () => {
      const names = await namesOf(installation.dataDir)
      const [pid = 0] = await egressesOf(names)
      process.kill(pid, 'SIGKILL')
      await waitFor('a new egress process', async () => {
        return (await visit(sandbox, 'http://shop.example/')) === shopAnswer()
      })
      assert.equal(await visit(sandbox, `http://${outside.otherAddress}/`), 'failed')
      assert.equal((await egressesOf(names)).length, 1)
    })

    test('the rules stay in force for copies and after a pause', { skip: isRunc }, async () => {
      await sandbox.pause()
      sandbox = await Sandbox.connect(sandbox.sandboxId, installation.connection)
      const [fork] = await sandbox.fork()
      assert.ok(fork instanceof Sandbox)
      for (const target of [sandbox, fork]) {
        assert.equal(await visit(target, 'http://shop.example/'), shopAnswer())
        assert.equal(await visit(target, 'http://else.example/'), 'failed')
      }
    })
  })
}

const visitProgram = `
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except OSError:
    print("failed")
`

/** Sends a request with a host name, then each line of stdin, and appends the replies to a file. */
const talkProgram = `
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
def say(text):
    s.send(text.encode())
    with open("/tmp/heard", "a") as file:
        heard = s.recv(1000).decode().strip()
        file.write(heard + "\\n")
        print("heard", heard, flush=True)
say("GET / HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")
for line in sys.stdin:
    say(line)
`
