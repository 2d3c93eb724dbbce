/** The whole platform over HTTPS, with a local CA and the unmodified SDK. */
import assert from 'node:assert/strict'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { request as requestSecure } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { atollProgram } from '../../../tools/bundle/programs.mjs'
import { newPatientPage, openBrowser, trustAuthority } from '../dashboard/browser.ts'
import { atoll, repository } from '../installation.ts'
import { installWithTls } from '../secure-installation.ts'
import type { SecureInstallation } from '../secure-installation.ts'

const proxy = '127.0.0.8'

describe('an installation with a domain and a local CA', { concurrency: 1 }, () => {
  const made = new AsyncDisposableStack()
  let secure: SecureInstallation
  let sandboxId: string
  let host: string

  before(async () => {
    const settings = { ATOLL_RUNTIME: 'gvisor', ATOLL_TRUSTED_PROXIES: `${proxy}, 10.99.0.0/16` }
    secure = made.use(await installWithTls(settings))
  })
  after(() => made.disposeAsync())

  /** Sends a request to the sandbox's host name, from an address of loopback. */
  async function get(
    scheme: 'http' | 'https',
    localAddress: string,
    headers: Record<string, string> = {},
  ): Promise<unknown> {
    const common = { path: '/', localAddress, agent: false, headers: { Host: host, ...headers } }
    const sent =
      scheme === 'http'
        ? request(secure.installation.url, common)
        : requestSecure({
            ...{ ...common, host: '127.0.0.1', port: secure.port, ca: secure.ca },
            servername: host.split(':', 1)[0] ?? '',
          })
    const reply = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.once('response', resolve).once('error', reject).end()
    })
    const body = await text(reply)
    return reply.statusCode === 200 ? JSON.parse(body) : body
  }

  test('serves the SDK by E2B_DOMAIN alone, and fetch by getHost()', async () => {
    const file = join(import.meta.dirname, 'https-client.ts')
    const seen = JSON.parse(await secure.runClient([file]))
    sandboxId = seen.sandboxId
    host = `8000-${sandboxId}.${secure.domain}`
    assert.deepEqual(seen, {
      sandboxId,
      host,
      stdout: 'over TLS\n',
      forwarded: ['127.0.0.1', 'https', host, host],
      downloaded: true,
    })
  })

  test('refuses a client that does not trust the CA', async () => {
    const file = join(import.meta.dirname, 'https-client.ts')
    await assert.rejects(secure.runClient([file], { NODE_EXTRA_CA_CERTS: '' }), /certificate/)
  })

  test('reports the client of a trusted proxy to programs, and ignores what other proxies say', async () => {
    const headers = {
      'X-Forwarded-For': '192.0.2.66, 203.0.113.9, 10.99.1.2',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'app.example',
    }
    const believed = ['203.0.113.9', 'https', 'app.example', host]
    assert.deepEqual(await get('http', proxy, headers), believed)
    assert.deepEqual(await get('https', proxy, headers), believed)
    assert.deepEqual(await get('http', '127.0.0.9', headers), ['127.0.0.9', 'http', host, host])
    assert.deepEqual(await get('https', '127.0.0.9', headers), ['127.0.0.9', 'https', host, host])
  })

  test('shows pages of sandboxes and the dashboard in a browser that trusts the CA', async () => {
    await using home = await mkdtempDisposable(join(tmpdir(), 'atoll-browser-'))
    {
      await using browser = await openBrowser(home.path)
      const page = await newPatientPage(browser)
      await assert.rejects(page.goto(`https://${host}/`), /ERR_CERT_AUTHORITY_INVALID/)
    }
    await trustAuthority(home.path, secure.caFile)
    await using browser = await openBrowser(home.path)
    const trusting = await newPatientPage(browser)
    const reply = await trusting.goto(`https://${host}/`)
    assert.deepEqual(await reply?.json(), ['127.0.0.1', 'https', host, host])
    await trusting.goto(`https://ui.${secure.domain}/`)
    const title = await trusting.title()
    const isSecure = await trusting.evaluate('isSecureContext')
    assert.deepEqual([/Atoll/.test(title), isSecure], [true, true])
  })

  test('reaches no sandbox by a host name of another domain', async () => {
    const Host = `8000-${sandboxId}.evil.test`
    assert.match(String(await get('http', '127.0.0.1', { Host })), /under the domain atoll/)
  })

  test('serves the command line on this machine, and with a domain and a CA elsewhere', async () => {
    const { dataDir, apiKey, env } = secure.installation
    const local = { ...env, E2B_API_URL: '', E2B_SANDBOX_URL: '', E2B_API_KEY: '' }
    const args = ['sandbox', 'exec', sandboxId, '--', 'echo', 'hello']
    const here = await tryRun(atoll, args, { env: { ...local, ATOLL_DATA_DIR: dataDir } })
    assert.equal(here.stdout, 'hello\n', here.stderr)
    const elsewhere = await secure.runClient([atollProgram(repository), ...args], {
      ATOLL_API_URL: `https://api.${secure.domain}`,
      ATOLL_API_KEY: apiKey,
      ATOLL_DATA_DIR: '/nonexistent',
    })
    assert.equal(elsewhere, 'hello\n')
  })

  test('takes over a new CA while it runs', async () => {
    const { installation, caFile } = secure
    const { env } = installation
    await waitFor('the sandbox', async () => (await get('https', '127.0.0.1')) !== undefined)
    const replaced = await tryRun(atoll, ['tls', 'local', '--replace'], { env })
    assert.match(replaced.stdout, /^created a local CA/, replaced.stderr)
    secure = { ...secure, ca: await readFile(caFile, 'utf8') }
    await waitFor('the new certificate', () =>
      get('https', '127.0.0.1').then(
        () => true,
        () => false,
      ),
    )
    const platform = await fetch(`${installation.url}/sandboxes/${sandboxId}`, {
      method: 'DELETE',
      headers: { 'X-API-Key': installation.apiKey },
    })
    assert.equal(platform.status, 204)
  })
})
