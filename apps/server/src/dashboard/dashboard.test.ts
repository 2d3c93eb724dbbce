/** The dashboard of a whole server on a simulated node, over HTTP. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { simulateNode } from '@atoll/simulated-node/node'
import { silentLogger } from '@atoll/kit/log'
import { loadServerConfig } from '../config.ts'
import { startServer } from '../server.ts'
import type { RunningServer } from '../server.ts'

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

suite('the dashboard', () => {
  let dataDir: string
  let server: RunningServer
  let port: string
  let host: string
  let origin: string
  let apiKey: string

  const start = async () => {
    const config = loadServerConfig({ ATOLL_DATA_DIR: dataDir, ATOLL_LISTEN: '127.0.0.1:0' })
    const { transport } = simulateNode()
    server = await startServer(config, {
      log: silentLogger,
      startNode: async () => ({ transport, async close() {} }),
    })
    port = new URL(server.apiUrl).port
    host = `ui.localhost:${port}`
    origin = `http://${host}`
    apiKey = server.firstCredentials?.apiKey ?? apiKey
  }

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'atoll-dashboard-'))
    await start()
  })
  after(async () => {
    await server.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  const ask = (
    method: string,
    path: string,
    options: { headers?: Record<string, string>; body?: unknown } = {},
  ): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const sent = request(
        { host: '127.0.0.1', port, method, path, headers: { host, ...options.headers } },
        async (res) => {
          const text = Buffer.concat(await Array.fromAsync(res)).toString('utf8')
          resolve({ status: res.statusCode ?? 0, headers: res.headers, text })
        },
      )
      sent.on('error', reject)
      sent.end(options.body === undefined ? undefined : JSON.stringify(options.body))
    })

  const signIn = async (body: unknown = { apiKey }) => {
    const answer = await ask('POST', '/bff/session', { headers: { origin }, body })
    return { ...answer, cookie: String(answer.headers['set-cookie']).split(';', 1)[0] ?? '' }
  }

  test('the page has a strict policy, and nothing may frame it', async () => {
    const { status, headers, text } = await ask('GET', '/sandboxes/iabc/terminal')
    const policy = String(headers['content-security-policy'])
    assert.equal(status, 200)
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
    ]) {
      assert.ok(policy.split('; ').includes(rule), rule)
    }
    assert.doesNotMatch(policy, /script-src[^;]*(unsafe|http|\*)/)
    const nonce = /style-src 'self' 'nonce-([\w-]+)'/.exec(policy)?.[1]
    assert.ok(nonce && text.includes(`nonce="${nonce}"`))
    assert.deepEqual(
      [headers['x-frame-options'], headers['x-content-type-options'], headers['referrer-policy']],
      ['DENY', 'nosniff', 'no-referrer'],
    )
    assert.deepEqual(
      [headers['cross-origin-opener-policy'], headers['cross-origin-resource-policy']],
      ['same-origin', 'same-origin'],
    )
    assert.equal(headers['access-control-allow-origin'], undefined)
    const again = await ask('GET', '/')
    assert.notEqual(again.headers['content-security-policy'], policy)
  })

  test('assets are served with and without compression, and nothing else is a file', async () => {
    const script = /src="(\/assets\/[\w.-]+\.js)"/.exec((await ask('GET', '/')).text)?.[1] ?? ''
    const plain = await ask('GET', script)
    const packed = await ask('GET', script, { headers: { 'accept-encoding': 'gzip' } })
    assert.match(plain.headers['content-type'] ?? '', /^text\/javascript/)
    assert.match(plain.headers['cache-control'] ?? '', /immutable/)
    assert.equal(packed.headers['content-encoding'], 'gzip')
    for (const path of ['/assets/../package.json', '/assets/%2e%2e/x', '/assets/none.js']) {
      assert.notEqual((await ask('GET', path)).text.includes('"name"'), true, path)
    }
    assert.equal((await ask('GET', '/assets/none.js')).status, 404)
  })

  test('on its host neither the API nor a sandbox answers', async () => {
    const key = { 'x-api-key': apiKey }
    assert.match((await ask('GET', '/health')).headers['content-type'] ?? '', /html/)
    assert.match((await ask('GET', '/v2/sandboxes', { headers: key })).text, /<!doctype html>/)
    const routed = { 'svc-sandbox-id': 'iabc', 'svc-sandbox-port': '8000' }
    assert.match((await ask('GET', '/', { headers: routed })).text, /<title>Atoll/)
    assert.equal((await ask('POST', '/sandboxes', { headers: { ...key, origin } })).status, 405)
    assert.equal((await ask('GET', `http://${host}/health`)).status, 400)
  })

  test('its paths do not exist on the host of the API', async () => {
    for (const path of ['/bff/session', '/assets/icon.svg']) {
      assert.equal((await ask('GET', path, { headers: { host: `127.0.0.1:${port}` } })).status, 404)
    }
  })

  test('a wrong key, a wrong link and a wrong body do not sign in', async () => {
    for (const [body, status] of [
      [{ apiKey: `e2b_${'0'.repeat(40)}` }, 401],
      [{ apiKey: 'nonsense' }, 401],
      [{ link: 'nonsense' }, 401],
      [{}, 400],
      [[], 400],
    ] as const) {
      const answer = await signIn(body)
      assert.deepEqual([answer.status, answer.headers['set-cookie']], [status, undefined])
    }
  })

  test('a session reads and writes through the API, and never sees a token of a sandbox', async () => {
    const { status, cookie } = await signIn()
    assert.equal(status, 200)
    const made = await ask('POST', '/bff/api/v2/sandboxes', {
      headers: { cookie, origin, 'content-type': 'application/json' },
      body: { templateID: 'base' },
    })
    assert.equal(made.status, 201)
    assert.doesNotMatch(made.text, /AccessToken/)
    assert.match(made.text, /sandboxID/)
    const { sandboxID } = JSON.parse(made.text)
    const shown = await ask('GET', `/bff/api/sandboxes/${sandboxID}`, { headers: { cookie } })
    assert.doesNotMatch(shown.text, /AccessToken/)
    assert.equal(shown.headers['access-control-allow-origin'], undefined)
    assert.equal(shown.headers['cache-control'], 'no-store')
  })

  test('without a session every path of the pages is refused', async () => {
    for (const path of [
      '/bff/session',
      '/bff/api/v2/sandboxes',
      '/bff/sandboxes/iabc/file?path=/x',
    ]) {
      assert.equal((await ask('GET', path)).status, 401, path)
    }
    const cookie = 'atoll-session=invented'
    assert.equal((await ask('GET', '/bff/session', { headers: { cookie } })).status, 401)
  })

  test('a request of another page is refused although it has the cookie', async () => {
    const { cookie } = await signIn()
    const theirs = `http://8000-iabc.localhost:${port}`
    for (const headers of [
      { cookie, origin: theirs },
      { cookie, 'sec-fetch-site': 'same-site' },
      { cookie, 'sec-fetch-site': 'cross-site' },
    ]) {
      assert.equal((await ask('GET', '/bff/session', { headers })).status, 403)
    }
    assert.equal((await ask('DELETE', '/bff/session', { headers: { cookie } })).status, 403)
    assert.equal((await ask('GET', '/bff/session', { headers: { cookie } })).status, 200)
  })

  test('a session survives a restart of the server and ends with its key', async () => {
    const { cookie: first } = await signIn()
    const made = await ask('POST', '/bff/api/api-keys', {
      headers: { cookie: first, origin, 'content-type': 'application/json' },
      body: { name: 'second' },
    })
    const key = JSON.parse(made.text)
    const { cookie } = await signIn({ apiKey: key.key })
    await server.close()
    await start()
    assert.equal((await ask('GET', '/bff/session', { headers: { cookie } })).status, 200)
    const deleted = await ask('DELETE', `/bff/api/api-keys/${key.id}`, {
      headers: { cookie: first, origin },
    })
    assert.equal(deleted.status, 204)
    assert.equal((await ask('GET', '/bff/session', { headers: { cookie } })).status, 401)
    assert.equal((await ask('GET', '/bff/api/v2/sandboxes', { headers: { cookie } })).status, 401)
    assert.equal((await ask('GET', '/bff/session', { headers: { cookie: first } })).status, 200)
  })

  test('another team’s sandbox looks absent, and operators’ operations do not exist', async () => {
    const { cookie } = await signIn()
    for (const path of [
      '/bff/sandboxes/iaaaaaaaaaaaaaaaaaaaa/file?path=/x',
      '/bff/api/admin/teams',
    ]) {
      assert.equal((await ask('GET', path, { headers: { cookie } })).status, 404, path)
    }
  })

  test('the sign-in link of the banner works once', async () => {
    const link = new URL(server.signInUrl ?? '').hash.slice(1)
    assert.deepEqual([(await signIn({ link })).status, (await signIn({ link })).status], [200, 401])
  })

  test('the dashboard can be off', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'atoll-dashboard-'))
    const env = { ATOLL_DATA_DIR: folder, ATOLL_LISTEN: '127.0.0.1:0', ATOLL_DASHBOARD_HOST: 'off' }
    const { transport } = simulateNode()
    const other = await startServer(loadServerConfig(env), {
      log: silentLogger,
      startNode: async () => ({ transport, async close() {} }),
    })
    try {
      assert.deepEqual([other.dashboardUrl, other.signInUrl], [undefined, undefined])
    } finally {
      await other.close()
      await rm(folder, { recursive: true, force: true })
    }
  })
})
