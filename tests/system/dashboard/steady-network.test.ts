import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { openBrowser } from './browser.ts'

const [name, peer] = ['atoll-steady0', 'atoll-steady1']
const requests = 20
/** Chromium opens so many connections to a host. The other requests wait for one: a change of interfaces ends them. */
const connections = 6

test('requests of Chromium succeed while the network interfaces of the host change', async (t) => {
  // A killed run may have left an interface.
  await removeInterface().catch(() => {})
  await using browser = await openBrowser()
  const held: ServerResponse[] = []
  const server = createServer((request, response) => {
    if (request.url === '/') response.setHeader('Content-Type', 'text/html').end('<p>page')
    else held.push(response)
  })
  t.after(() => server.close().closeAllConnections())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const page = await browser.newPage()
  await page.goto(`http://127.0.0.1:${address.port}/`)
  const results = page.evaluate((count) => {
    const read = async (path: string) => (await fetch(path)).text()
    const paths = Array.from({ length: count }, (_, index) => `/held/${index}`)
    return Promise.all(paths.map((path) => read(path).catch(String)))
  }, requests)
  await waitFor('the first requests', () => held.length >= connections)
  for (let count = 1; count <= 5; count += 1) await changeInterfaces()
  const answering = setInterval(() => held.splice(0).forEach((one) => one.end('whole')), 10)
  t.after(() => clearInterval(answering))
  assert.deepEqual(new Set(await results), new Set(['whole']))
})

async function changeInterfaces(): Promise<void> {
  await run('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', peer])
  await run('ip', ['address', 'add', '198.51.100.77/32', 'dev', name])
  await run('ip', ['link', 'set', name, 'up'])
  await run('ip', ['link', 'set', peer, 'up'])
  await removeInterface()
}

async function removeInterface(): Promise<void> {
  await run('ip', ['link', 'delete', name])
}
