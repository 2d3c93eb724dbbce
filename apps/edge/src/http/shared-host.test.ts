import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { createServer as createNetServer } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { ownHost, rawClient, startTestEdge } from '../sim/test-edge.ts'

/** The three ways to name a sandbox. The first two are on hosts that also serve the platform API. */
const ways = ['routing headers', 'a signed URL', 'its own host name'] as const
type Way = (typeof ways)[number]

/** Headers that a browser stores for the whole origin, or a cache for a URL of the API. */
const attacks: readonly [string, string][] = [
  ['fix the session of a user with Set-Cookie', 'Set-Cookie: session=evil; Path=/'],
  ['log users out with Clear-Site-Data', 'Clear-Site-Data: "*"'],
  ['widen a service worker with Service-Worker-Allowed', 'Service-Worker-Allowed: /'],
  ['lock browsers out with Strict-Transport-Security', 'Strict-Transport-Security: max-age=99999'],
  ['move the origin to another server with Alt-Svc', 'Alt-Svc: h2="evil.test:443"; ma=99999'],
  ['collect URLs of the API with Report-To', 'Report-To: {"endpoints":[]}'],
  ['collect failures of the API with NEL', 'NEL: {"report_to":"x"}'],
  ['ask for a password with WWW-Authenticate', 'WWW-Authenticate: Basic realm="Atoll"'],
  ['poison a cache with Cache-Control', 'Cache-Control: public, max-age=31536000'],
  ['poison a CDN with CDN-Cache-Control', 'CDN-Cache-Control: public, max-age=31536000'],
  ['poison one kind of CDN', 'Example-CDN-Cache-Control: public'],
]

for (const way of ways) {
  const isShared = way !== 'its own host name'
  for (const [name, header] of attacks) {
    test(`by ${way}, a sandbox ${isShared ? 'cannot' : 'may, for itself,'} ${name}`, async (t) => {
      const { exchange } = await setup(t, way, answering([header]))
      assert.equal((await exchange()).includes(`\r\n${header}\r\n`), !isShared)
    })
  }

  test(`by ${way}, a page of a sandbox ${isShared ? 'runs no scripts' : 'may run scripts'}`, async (t) => {
    const own = ['Content-Security-Policy: script-src *', 'X-Content-Type-Options: sniff']
    const { exchange } = await setup(t, way, answering(['Content-Type: text/html', ...own]))
    const answer = await exchange()
    const valuesOf = (name: string) => answer.match(new RegExp(`(?<=^${name}: ).*(?=\r$)`, 'gim'))
    assert.deepEqual(valuesOf('Content-Type'), ['text/html'])
    const [policies, sniffing, caching] = isShared
      ? [['script-src *', 'sandbox'], ['nosniff'], ['no-store']]
      : [['script-src *'], ['sniff'], null]
    assert.deepEqual(valuesOf('Content-Security-Policy'), policies)
    assert.deepEqual(valuesOf('X-Content-Type-Options'), sniffing)
    assert.deepEqual(valuesOf('Cache-Control'), caching)
  })

  test(`by ${way}, a sandbox ${isShared ? 'never sees' : 'sees its own'} cookies`, async (t) => {
    const listed: RequestListener = (req, res) => {
      req.resume().on('end', () => {
        res.end(`[${req.headers.cookie}|${req.trailers['cookie']}|${req.headers.authorization}]`)
      })
    }
    const { exchange } = await setup(t, way, createServer(listed))
    const more = 'Cookie: a=1\r\nAuthorization: Basic dXNlcjo=\r\nTransfer-Encoding: chunked'
    const answer = await exchange(`${more}\r\n\r\n1\r\nx\r\n0\r\nCookie: b=2`)
    const cookies = isShared ? 'undefined|undefined' : 'a=1|b=2'
    assert.ok(answer.includes(`[${cookies}|Basic dXNlcjo=]`), answer)
  })

  test(`by ${way}, trailers and early hints of a sandbox ${isShared ? 'set nothing' : 'pass'}`, async (t) => {
    const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n'
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Set-Cookie\r\n\r\n'
    const end = '0\r\nSet-Cookie: late=1\r\nX-Sum: 7\r\n\r\n'
    const { exchange } = await setup(t, way, answeringBytes(`${hint}${head}2\r\nok\r\n${end}`))
    const answer = await exchange('TE: trailers')
    assert.match(answer, /X-Sum: 7/)
    assert.equal(answer.includes('late=1'), !isShared)
    assert.equal(answer.includes('103 Early Hints'), !isShared)
  })

  for (const status of ['101 Switching Protocols', '403 Forbidden']) {
    test(`by ${way}, an upgrade answered ${status} ${isShared ? 'sets no cookie' : 'may set cookies'}`, async (t) => {
      const upgraded = status.startsWith('101') ? 'Connection: Upgrade\r\nUpgrade: raw\r\n' : ''
      const bytes = `HTTP/1.1 ${status}\r\n${upgraded}Set-Cookie: a=1\r\n\r\nok`
      const { exchange } = await setup(t, way, answeringBytes(bytes))
      const answer = await exchange('Connection: Upgrade\r\nUpgrade: raw\r\nCookie: b=2')
      assert.ok(answer.startsWith(`HTTP/1.1 ${status}`), answer)
      assert.equal(answer.includes('Set-Cookie: a=1'), !isShared)
      assert.equal(answer.includes('\r\nContent-Security-Policy: sandbox\r\n'), isShared)
    })
  }
}

test('CORS headers are forwarded on a shared host', async (t) => {
  const cors = ['Access-Control-Allow-Origin: *', 'Access-Control-Expose-Headers: ETag']
  const { exchange } = await setup(t, 'a signed URL', answering(cors))
  const answer = await exchange('Origin: http://app.test')
  for (const header of cors) assert.ok(answer.includes(`\r\n${header}\r\n`), answer)
})

/** Starts a sandbox with this program, and returns a function that sends it one request. */
async function setup(t: TestContext, way: Way, program: Parameters<typeof serve>[1]) {
  const testEdge = await startTestEdge({}, { findSigner: async () => 'abc' })
  t.after(() => testEdge.close())
  t.after(() => program.close())
  const lines = await serve(testEdge, program, way)
  return {
    /** Returns all bytes of the response. */
    async exchange(more = 'X-More: none'): Promise<string> {
      const client = rawClient(testEdge.edgePort, `${lines}\r\n${more}\r\n\r\n`)
      await waitFor('the answer', () => {
        const received = client.received()
        return client.state() !== 'open' || /ok$|\]$|0\r\n(.+\r\n)*\r\n$/.test(received)
      })
      client.socket.destroy()
      return client.received()
    },
  }
}

async function serve(
  testEdge: Awaited<ReturnType<typeof startTestEdge>>,
  program: ReturnType<typeof createServer> | ReturnType<typeof createNetServer>,
  way: Way,
): Promise<string> {
  if (way === 'a signed URL') {
    await new Promise<void>((resolve) => program.listen(49_983, '127.93.11.8', resolve))
    testEdge.node.start('abc', '127.93.11.8')
    return 'POST /files?path=%2Fa&signature=v1_x HTTP/1.1\r\nHost: localhost'
  }
  const routing = await testEdge.serve('abc', program)
  const headers = way === 'routing headers' ? { Host: 'localhost', ...routing } : ownHost(routing)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return ['POST / HTTP/1.1', ...lines].join('\r\n')
}

function answering(headers: readonly string[]) {
  return answeringBytes(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${headers.join('\r\n')}\r\n\r\nok`)
}

function answeringBytes(bytes: string) {
  return createNetServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(bytes))
  })
}
