/** Certificates of a real CA: Pebble validates the proofs and signs. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request as requestPlain } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { connect } from 'node:tls'
import { simulateNode } from '@atoll/simulated-node/node'
import { createLogger } from '@atoll/kit/log'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { loadServerConfig } from '../../config.ts'
import { startServer } from '../../server.ts'
import { startPebble } from '../../sim/pebble.ts'
import type { Pebble } from '../../sim/pebble.ts'

const hostName = 'atoll.test'
let pebble: Pebble

async function makeDataDir(t: TestContext): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-acme-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** Starts a server with a simulated node. */
async function start(t: TestContext, dataDir: string, settings: Record<string, string> = {}) {
  const port = await freePort()
  const config = loadServerConfig({
    ATOLL_DATA_DIR: dataDir,
    ATOLL_DOMAIN: `${hostName}:${port}`,
    ATOLL_LISTEN: '127.0.0.1:0',
    ATOLL_ACME_DIRECTORY: pebble.directoryUrl,
    ATOLL_ACME_TERMS: 'agreed',
    ATOLL_ACME_CA_FILE: pebble.caFile,
    ATOLL_HTTP_LISTEN: `127.0.0.1:${pebble.httpPort}`,
    ...settings,
  })
  let logged = ''
  const log = createLogger('info', { write: (line: string) => void (logged += line) })
  const node = simulateNode()
  const startNode = async () => ({ transport: node.transport, async close() {} })
  const server = await startServer(config, { log, startNode })
  let isClosed = false
  const close = async () => {
    if (!isClosed) await server.close()
    isClosed = true
  }
  t.after(close)
  const certificate = async (servername: string): Promise<X509Certificate> => {
    const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const seen = socket.getPeerX509Certificate() ?? assert.fail()
    socket.destroy()
    return seen
  }
  return { port, logged: () => logged, close, certificate }
}

/** Requests the health check as a client that trusts only the root of the CA. */
async function getStatus(port: number, servername: string): Promise<number | undefined> {
  const options = { host: '127.0.0.1', port, servername, path: '/health', agent: false }
  const headers = { Host: `${servername}:${port}` }
  const outgoing = request({ ...options, headers, ca: await pebble.root() }).end()
  const [reply]: IncomingMessage[] = await once(outgoing, 'response')
  reply?.resume()
  return reply?.statusCode
}

async function readModes(dataDir: string) {
  const folder = join(dataDir, 'tls')
  const names = await readdir(folder)
  return Promise.all(
    names
      .toSorted()
      .map(async (name) => [
        name.replace(/-[0-9a-f]{12}/, ''),
        ((await stat(join(folder, name))).mode & 0o777).toString(8),
      ]),
  )
}

describe('certificates by ACME', { concurrency: 1 }, () => {
  before(async () => {
    pebble = await startPebble()
  })
  after(() => pebble[Symbol.asyncDispose]())

  test('proofs over HTTP give a certificate for API and dashboard, which outlives the CA', async (t) => {
    const dataDir = await makeDataDir(t)
    const { port, logged, certificate, close } = await start(t, dataDir)
    assert.match(logged(), /tls\.temporary_certificate/)
    await waitFor('the certificate', () => logged().includes('tls.new_certificate'))
    const seen = await certificate(`api.${hostName}`)
    assert.equal(
      seen.subjectAltName,
      [`api.${hostName}`, `sandbox.${hostName}`, `ui.${hostName}`]
        .map((name) => `DNS:${name}`)
        .join(', '),
    )
    assert.equal(await getStatus(port, `api.${hostName}`), 200)
    await assert.rejects(getStatus(port, `8000-x.${hostName}`), {
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    assert.deepEqual(await readModes(dataDir), [
      ['acme-account.json', '600'],
      ['acme-attempts.json', '600'],
      ['acme.pem', '600'],
    ])
    assert.doesNotMatch(logged(), /PRIVATE KEY/)
    await close()

    // The CA is gone, and the certificate is still good.
    const dead = `https://localhost:${await freePort()}/dir`
    const again = await start(t, dataDir, { ATOLL_ACME_DIRECTORY: dead })
    assert.equal((await again.certificate(`api.${hostName}`)).fingerprint256, seen.fingerprint256)
    assert.doesNotMatch(again.logged(), /tls\.(temporary|acme)/)
  })

  test('a hook that publishes DNS records gives a wildcard certificate', async (t) => {
    const dataDir = await makeDataDir(t)
    const { port, logged } = await start(t, dataDir, {
      ATOLL_ACME_HOOK: pebble.hook,
      ATOLL_ACME_EMAIL: 'operator@example.com',
    })
    await waitFor('the certificate', () => logged().includes('tls.new_certificate'))
    assert.equal(await getStatus(port, `api.${hostName}`), 200)
    // A sandbox that does not exist, behind a name that the certificate covers.
    assert.equal(await getStatus(port, `8000-absent.${hostName}`), 502)
  })

  test('a server starts without the CA, says why there is no certificate, and waits', async (t) => {
    const dataDir = await makeDataDir(t)
    const url = `https://localhost:${await freePort()}/dir`
    const { logged, certificate, close } = await start(t, dataDir, { ATOLL_ACME_DIRECTORY: url })
    await waitFor('the failure', () => logged().includes('tls.acme_failed'))
    assert.match(logged(), /cannot be reached: .*ECONNREFUSED.*"retryAt":"20/)
    assert.match(logged(), /a temporary one that clients refuse/)
    assert.ok((await certificate(`8000-x.${hostName}`)).checkHost(`8000-x.${hostName}`))
    await close()
    // A restart makes no second attempt before its time.
    const again = await start(t, dataDir, { ATOLL_ACME_DIRECTORY: url })
    await again.close()
    assert.doesNotMatch(again.logged(), /tls\.acme_/)
    const attempts = JSON.parse(await readFile(join(dataDir, 'tls/acme-attempts.json'), 'utf8'))
    assert.equal(attempts.failures, 1)
  })

  test('the reason of a hook or a CA that refuses is logged', async (t) => {
    const folder = await makeDataDir(t)
    const hook = join(folder, 'hook')
    await writeFile(hook, '#!/bin/sh\necho "no zone for $2" >&2\nexit 3\n', { mode: 0o700 })
    const failing = await start(t, folder, { ATOLL_ACME_HOOK: hook })
    await waitFor('the failure', () => failing.logged().includes('tls.acme_failed'))
    assert.match(
      failing.logged(),
      /add _acme-challenge\.atoll\.test failed with exit status 3: no zone for _acme-challenge/,
    )
    await failing.close()

    const silent = join(folder, 'silent')
    await writeFile(silent, '#!/bin/sh\n', { mode: 0o700 })
    const refused = await start(t, await makeDataDir(t), { ATOLL_ACME_HOOK: silent })
    await waitFor('the refusal', () => refused.logged().includes('tls.acme_failed'))
    assert.match(refused.logged(), /"reason":"[^"]*(TXT|DNS)/)
  })

  test('plain HTTP redirects to HTTPS and serves nothing else', async (t) => {
    const { port } = await start(t, await makeDataDir(t), { ATOLL_ACME_HOOK: pebble.hook })
    const send = async (method: string, host: string, path: string) => {
      const address = { host: '127.0.0.1', port: pebble.httpPort, agent: false }
      const outgoing = requestPlain({ ...address, method, path, headers: { Host: host } }).end()
      const [reply]: IncomingMessage[] = await once(outgoing, 'response')
      reply?.resume()
      return [reply?.statusCode, reply?.headers.location]
    }
    const secure = `https://8000-x.${hostName}:${port}`
    assert.deepEqual(await send('GET', `8000-X.${hostName}:80`, '/a?b=c'), [308, `${secure}/a?b=c`])
    assert.deepEqual(await send('POST', `api.${hostName}`, '/sandboxes'), [403, undefined])
    for (const [host, path] of [
      ['evil.example', '/'],
      [`evil.example#.${hostName}`, '/'],
      [`x${hostName}`, '/'],
    ] as const) {
      assert.deepEqual(await send('GET', host, path), [404, undefined])
    }
    const [status] = await send('GET', 'evil.example', '/.well-known/acme-challenge/unknown')
    assert.equal(status, 404)
  })
})
