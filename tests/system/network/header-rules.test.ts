import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { issueCertificate, createAuthority } from '@atoll/egress/authority'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox, Secret } from 'e2b'
import type { SandboxOpts } from 'e2b'
import { egressesOf, namesOf } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { openOutside } from './outside.ts'
import type { Outside } from './outside.ts'
import { runtimes, shell } from '../shell.ts'

/** Header rules on outgoing requests, as external servers and programs inside the sandbox see them. */
for (const runtime of runtimes) {
  describe(`header rules under ${runtime}`, { concurrency: 1 }, () => {
    const resources = new AsyncDisposableStack()
    const secret = 'Bearer the-secret-of-the-owner'
    const network = {
      rules: { 'api.example': [{ transform: { headers: { Authorization: secret } } }] },
    }
    let installation: Installation
    let outside: Outside
    let sandbox: Sandbox

    before(async () => {
      const folder = resources.use(await mkdtempDisposable(join(tmpdir(), 'atoll-authority-')))
      const authority = createAuthority()
      const caFile = join(folder.path, 'ca.pem')
      await writeFile(caFile, authority.certificate)
      outside = resources.use(await openOutside('11.22.36', []))
      const { publicAddress, otherAddress } = outside
      await outside.serveNames({ 'api.example': publicAddress, 'else.example': publicAddress })
      await outside.start(join(import.meta.dirname, 'header-server.ts'), {
        trusted: issueCertificate(authority, 'api.example'),
        untrusted: issueCertificate(createAuthority(), 'api.example'),
      })
      installation = resources.use(
        await install({
          ATOLL_RUNTIME: runtime,
          ATOLL_NAMESERVERS: publicAddress,
          ATOLL_EGRESS_CA_FILE: caFile,
        }),
      )
      assert.notEqual(publicAddress, otherAddress)
      sandbox = await createSandbox({ network })
    })
    after(() => resources.disposeAsync())

    const createSandbox = (options: SandboxOpts = {}) =>
      Sandbox.create('base', { ...installation.connection, timeoutMs: 600_000, ...options })

    /** Returns the request that the server got, or the exit code of curl. */
    async function curl(from: Sandbox, args: string) {
      const { code, stdout } = await shell(from, `curl -sS --max-time 60 ${args}`)
      return code === 0 ? JSON.parse(stdout) : `failed with ${code}`
    }
    const https = 'https://api.example:8443/path?a=b'

    test('requests of every program get the headers, which replace headers of the same name', async () => {
      const {
        at: serverAddress,
        method,
        url,
        headers,
        bytes,
      } = await curl(
        sandbox,
        `-H 'authorization: mine' -H 'AUTHORIZATION: too' -H 'x-own: kept' --data-binary 12345 '${https}'`,
      )
      assert.deepEqual(
        [serverAddress, method, url, bytes],
        [outside.publicAddress, 'POST', '/path?a=b', 5],
      )
      assert.equal(headers.authorization, secret)
      assert.equal(headers['x-own'], 'kept')
      assert.equal(headers.host, 'api.example:8443')
      for (const program of programs(https)) {
        const { stdout, stderr } = await shell(sandbox, program)
        assert.equal(JSON.parse(stdout || '{}').headers?.authorization, secret, stderr)
      }
    })

    test('a request without TLS gets the headers too, but only on port 80', async () => {
      const { stdout } = await shell(sandbox, 'curl -sS http://api.example/')
      assert.ok(stdout.endsWith(` ${secret}`), stdout)
      const { headers } = await curl(sandbox, 'http://api.example:8080/')
      assert.equal(headers.authorization, undefined)
    })

    test('the values are invisible inside the sandbox and in responses', async () => {
      const places = 'env; grep -raF the-secret /etc /home /root /run /tmp /usr/local /var'
      const { stdout } = await shell(sandbox, `cat /proc/*/environ; ${places}`)
      assert.ok(!stdout.includes('the-secret'))
      const { network: shownNetwork } = await sandbox.getInfo()
      const headers = { Authorization: '***' }
      assert.deepEqual(shownNetwork?.rules, { 'api.example': [{ transform: { headers } }] })
    })

    test('requests to other names are not changed', async () => {
      const { headers } = await curl(sandbox, '-k https://else.example:8443/')
      assert.equal(headers.authorization, undefined)
      assert.equal(await curl(sandbox, 'https://else.example:8443/'), 'failed with 60')
    })

    test('a request to a wrong address goes to the address of its host name', async () => {
      const connect = `--connect-to ::${outside.otherAddress}:8443`
      const { at: serverAddress, headers } = await curl(sandbox, `${connect} ${https}`)
      assert.deepEqual([serverAddress, headers.authorization], [outside.publicAddress, secret])
    })

    test('a server without a valid certificate gets no headers', async () => {
      const { stdout } = await shell(
        sandbox,
        `curl -s -o /tmp/said -w '%{http_code}' https://api.example:8444/; cat /tmp/said`,
      )
      assert.match(stdout, /^502/)
      assert.ok(!stdout.includes('the-secret'))
    })

    test('header rules allow no connection by themselves', async () => {
      await sandbox.updateNetwork({ ...network, denyOut: ['0.0.0.0/0'] })
      assert.match(await curl(sandbox, https), /^failed/)
      await sandbox.updateNetwork({ ...network, denyOut: [`${outside.publicAddress}/32`] })
      const connect = `--connect-to ::${outside.otherAddress}:8443`
      assert.match(String(await curl(sandbox, `-f ${connect} ${https}`)), /^failed/)
      await sandbox.updateNetwork({
        ...network,
        denyOut: ['0.0.0.0/0'],
        allowOut: ['api.example'],
      })
      assert.equal((await curl(sandbox, https)).headers.authorization, secret)
      await sandbox.updateNetwork(network)
    })

    test('an update adds header rules to a running sandbox, and removes them', async () => {
      const newSandbox = await createSandbox()
      assert.equal((await curl(newSandbox, `-k ${https}`)).headers.authorization, undefined)
      await newSandbox.updateNetwork(network)
      assert.equal((await curl(newSandbox, https)).headers.authorization, secret)
      await newSandbox.updateNetwork({})
      assert.equal((await curl(newSandbox, `-k ${https}`)).headers.authorization, undefined)
      await newSandbox.kill()
    })

    test('a rule can refer to a secret, and a new value applies at once', async () => {
      const connection = installation.connection
      await Secret.create('Api-Key', 'the-secret-at-first', connection)
      const Authorization = `Bearer ${Secret.fill('api-key')}`
      const headers = { Authorization }
      await sandbox.updateNetwork({ rules: { 'api.example': [{ transform: { headers } }] } })
      // `-k`: a connection without a header to set is not terminated, and curl does not trust the server's own certificate.
      const readSentHeader = async () => (await curl(sandbox, `-k ${https}`)).headers.authorization
      assert.equal(await readSentHeader(), 'Bearer the-secret-at-first')
      const { version } = await Secret.update('api-key', 'the-secret-now', connection)
      assert.deepEqual([version, await readSentHeader()], [2, 'Bearer the-secret-now'])
      const secrets = await Secret.list(connection).nextItems()
      assert.deepEqual(
        secrets.map(({ name }) => name),
        ['api-key'],
      )
      assert.equal(await Secret.destroy('api-key', connection), true)
      assert.equal(await Secret.exists('api-key', connection), false)
      assert.equal(await readSentHeader(), undefined)
      await sandbox.updateNetwork(network)
    })

    test('header rules survive a crash of the server and of the egress process', async () => {
      await installation.crash()
      await installation.start()
      sandbox = await Sandbox.connect(sandbox.sandboxId, installation.connection)
      assert.equal((await curl(sandbox, https)).headers.authorization, secret)
      const [pid = 0] = await egressesOf(await namesOf(installation.dataDir))
      process.kill(pid, 'SIGKILL')
      await waitFor('a new egress process', async () => {
        return (await curl(sandbox, https)).headers?.authorization === secret
      })
    })

    test('header rules apply after a pause and in copies, with the same authority', async () => {
      await sandbox.pause({ keepMemory: runtime === 'gvisor' })
      sandbox = await Sandbox.connect(sandbox.sandboxId, installation.connection)
      const [fork] = await sandbox.fork()
      assert.ok(fork instanceof Sandbox)
      const authorities = []
      for (const target of [sandbox, fork]) {
        assert.equal((await curl(target, https)).headers.authorization, secret)
        authorities.push(await target.files.read(certificatePath))
      }
      assert.equal(authorities[0], authorities[1])
    })
  })
}

const certificatePath = '/usr/local/share/ca-certificates/atoll-egress.crt'

/** Commands of programs that find trusted certificates in different ways. */
const programs = (url: string) => [
  `curl -sS '${url}'`,
  `python3 -c 'import urllib.request; print(urllib.request.urlopen("${url}").read().decode())'`,
  `wget -qO- '${url}' || curl -sS '${url}'`,
]
