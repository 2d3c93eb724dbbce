import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import type { SandboxOpts } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { send } from '../wire.ts'

const port = 8000

/** Ingress settings of a create request. */
describe('requests to a sandbox', { concurrency: 1 }, () => {
  const resources = new AsyncDisposableStack()
  let installation: Installation

  before(async () => {
    installation = resources.use(await install({ ATOLL_RUNTIME: 'gvisor' }))
  })
  after(() => resources.disposeAsync())

  /** Creates a sandbox with a server that returns the Host header of its requests. */
  async function createSandbox(options: SandboxOpts, program = serverProgram): Promise<Sandbox> {
    const connection = { ...installation.connection, timeoutMs: 600_000 }
    const sandbox = await Sandbox.create('base', { ...connection, ...options })
    await sandbox.files.write('/tmp/server.py', program)
    const server = await sandbox.commands.run('python3 -u /tmp/server.py', {
      background: true,
      timeoutMs: 0,
    })
    await waitFor('the server', () => server.stdout.includes('listening'))
    return sandbox
  }

  const get = (sandbox: Sandbox, headers: Record<string, string> = {}) =>
    fetch(installation.url, {
      headers: {
        'E2b-Sandbox-Id': sandbox.sandboxId,
        'E2b-Sandbox-Port': String(port),
        ...headers,
      },
    })

  test('require the traffic token of a private sandbox, running or paused, and not the token of envd', async () => {
    const sandbox = await createSandbox({
      network: { allowPublicTraffic: false },
      lifecycle: { onTimeout: 'pause', autoResume: true },
    })
    const token = sandbox.trafficAccessToken ?? assert.fail('no token')
    const tokenHeader = { 'e2b-traffic-access-token': token }
    const statuses = async () => {
      const replies = [await get(sandbox), await get(sandbox, { 'e2b-traffic-access-token': 'x' })]
      return replies.map(({ status }) => status)
    }
    assert.deepEqual(await statuses(), [403, 403])
    assert.equal((await get(sandbox, tokenHeader)).status, 200)
    assert.equal(await sandbox.isRunning(), true)
    await sandbox.pause()
    assert.deepEqual(await statuses(), [403, 403])
    assert.equal((await sandbox.getInfo()).state, 'paused')
    assert.equal((await get(sandbox, tokenHeader)).status, 200)
    assert.equal((await sandbox.getInfo()).state, 'running')
    const reconnected = await Sandbox.connect(sandbox.sandboxId, installation.connection)
    assert.equal(reconnected.trafficAccessToken, token)
    await sandbox.kill()
  })

  test('need no token by default', async () => {
    const sandbox = await createSandbox({})
    const reply = await get(sandbox)
    const expected = `${new URL(installation.url).host} None`
    assert.deepEqual([sandbox.trafficAccessToken, await reply.text()], [undefined, expected])
    await sandbox.kill()
  })

  test('show the masked host to programs, also after a restart of the server', async () => {
    const sandbox = await createSandbox({ network: { maskRequestHost: 'app.test:${PORT}' } })
    const expected = `app.test:${port} ${new URL(installation.url).host}`
    assert.equal(await (await get(sandbox)).text(), expected)
    await installation.crash()
    await installation.start()
    assert.equal(await (await get(sandbox)).text(), expected)
    assert.equal((await sandbox.getInfo()).network?.maskRequestHost, 'app.test:${PORT}')
    await sandbox.kill()
  })

  test('use TLS on HTTPS ports, and accept any certificate', async () => {
    const pem = await run('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', '-', '-subj', '/CN=whoever', '-days', '1'],
    ])
    const program = serverProgram.replace('# secure', secureProgram).replace('PEM', pem)
    const sandbox = await createSandbox({ network: { httpsPorts: [port] } }, program)
    assert.equal((await get(sandbox)).status, 200)
    const withoutTls = await createSandbox({}, program)
    assert.equal((await get(withoutTls)).status, 502)
    await Promise.all([sandbox.kill(), withoutTls.kill()])
  })

  test('run no page of a sandbox on the origin of the API, by signed URL or by header', async () => {
    const sandbox = await createSandbox({}, hostileProgram)
    const page = '<script>fetch("/sandboxes")</script>'
    await sandbox.files.write('/tmp/page.html', page)
    const signedReply = await fetch(await sandbox.downloadUrl('/tmp/page.html'))
    const headerReply = await get(sandbox, { Cookie: 'a=1' })
    for (const reply of [signedReply, headerReply]) {
      assert.equal(reply.headers.get('content-security-policy'), 'sandbox')
      assert.equal(reply.headers.get('x-content-type-options'), 'nosniff')
      assert.equal(reply.headers.get('cache-control'), 'no-store')
      assert.deepEqual(reply.headers.getSetCookie(), [])
      assert.equal(reply.headers.get('clear-site-data'), null)
    }
    assert.deepEqual([await signedReply.text(), await headerReply.text()], [page, 'None'])

    const { hostname, port: apiPort } = new URL(installation.url)
    const host = `${port}-${sandbox.sandboxId}.localhost:${apiPort}`
    const hostReply = await send(`http://${hostname}:${apiPort}`, {
      path: '/',
      headers: { Host: host, Cookie: 'a=1' },
    })
    assert.deepEqual(
      [
        hostReply.text,
        hostReply.headers['set-cookie'],
        hostReply.headers['content-security-policy'],
      ],
      ['a=1', ['session=evil'], undefined],
    )
    assert.equal(await sandbox.files.read('/tmp/page.html'), page)
    await sandbox.kill()
  })
})

const hostileProgram = `
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(self.headers['Cookie']).encode()
        self.send_response(200)
        self.send_header('Set-Cookie', 'session=evil')
        self.send_header('Clear-Site-Data', '"*"')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = ThreadingHTTPServer(('0.0.0.0', ${port}), Handler)
print('listening', flush=True)
server.serve_forever()
`

const serverProgram = `
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{self.headers['Host']} {self.headers['X-Forwarded-Host']}".encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = ThreadingHTTPServer(('0.0.0.0', ${port}), Handler)
# secure
print('listening', flush=True)
server.serve_forever()
`

const secureProgram = `
import ssl
open('/tmp/server.pem', 'w').write('''PEM''')
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('/tmp/server.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
`
