import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Process } from '@atoll/contracts/gen/process/process_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { faultFromConnect } from './connect-fault.ts'
import { createSandboxClient } from './sandbox.ts'

test('a stream carries the routing headers, the token and the user', async (t) => {
  const { url, headers } = await setup(t)
  const client = createSandboxClient({
    url,
    sandboxId: 'iabc',
    accessToken: 'token',
    user: 'root',
  })
  const events = await Array.fromAsync(client.start({ process: { cmd: 'true' } }))
  assert.deepEqual(
    events.map(({ event }) => event?.event.case),
    ['start', 'end'],
  )
  assert.deepEqual(
    [
      headers[0]?.['svc-sandbox-id'],
      headers[0]?.['svc-sandbox-port'],
      headers[0]?.['x-access-token'],
      headers[0]?.authorization,
    ],
    ['iabc', '49983', 'token', `Basic ${Buffer.from('root:').toString('base64')}`],
  )
})

test('token and user are optional, and the port can be changed', async (t) => {
  const { url, headers } = await setup(t)
  await createSandboxClient({ url, sandboxId: 'iabc', port: 8080 }).list({})
  assert.deepEqual(
    [headers[0]?.['svc-sandbox-port'], headers[0]?.['x-access-token'], headers[0]?.authorization],
    ['8080', undefined, undefined],
  )
})

test('a Connect error becomes a fault with the same message', async (t) => {
  const { url } = await setup(t)
  const failed = await createSandboxClient({ url, sandboxId: 'iabc' })
    .closeStdin({})
    .then(unexpected, (thrown: unknown) => faultFromConnect(thrown, url))
  assert.deepEqual([failed.kind, failed.message], ['not_found', 'no such process'])
})

test('an unreachable server is a fault that names the URL', async (t) => {
  const { url, close } = await setup(t)
  await close()
  const failed = await createSandboxClient({ url, sandboxId: 'iabc' })
    .list({})
    .then(unexpected, (thrown: unknown) => faultFromConnect(thrown, url))
  assert.deepEqual([failed.reason, failed.message], ['no_server', `No server at ${url}`])
})

test('a stream that a proxy rejects names the server and its status', async (t) => {
  const { url } = await setup(t)
  const failed = await Array.fromAsync(
    createSandboxClient({ url: `${url}/elsewhere`, sandboxId: 'iabc' }).start({}),
  ).then(unexpected, (thrown: unknown) => faultFromConnect(thrown, url))
  assert.equal(failed.message, `Cannot reach the sandbox: ${url} answered HTTP 404`)
})

function unexpected(): never {
  assert.fail('the call succeeded')
}

async function setup(t: TestContext) {
  const headers: IncomingHttpHeaders[] = []
  const handler = connectNodeAdapter({
    routes: (router) =>
      router.service(Process, {
        list: () => ({ processes: [] }),
        async *start() {
          yield { event: { event: { case: 'start', value: { pid: 7 } } } }
          yield { event: { event: { case: 'end', value: { exited: true } } } }
        },
        closeStdin() {
          throw new ConnectError('no such process', Code.NotFound)
        },
      }),
  })
  const server = createServer((request, response) => {
    headers.push(request.headers)
    handler(request, response)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const close = () =>
    new Promise((resolve) => {
      server.closeAllConnections()
      server.close(resolve)
    })
  t.after(close)
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return { url: `http://127.0.0.1:${address.port}`, headers, close }
}
