/** The start page of the dashboard, in a real browser, with sandboxes of a simulated node. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { Verdict } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { startDashboardUnderTest } from '@atoll/server/sim/dashboard-client'
import type { DashboardUnderTest } from '@atoll/server/sim/dashboard-client'
import { findBarriers } from './accessibility.ts'
import { openBrowser } from './browser.ts'
import { takeScreenshots } from './screenshots.ts'
import { openSignedInPage } from './signed-in-page.ts'
import type { SignedInPage } from './signed-in-page.ts'

suite('the start page of the dashboard', () => {
  let server: DashboardUnderTest
  let browser: Browser
  let signedIn: SignedInPage
  let id: string
  let otherId: string

  before(async () => {
    server = await startDashboardUnderTest()
    id = await create({ timeout: 3_600, network: { denyOut: ['0.0.0.0/0'] } })
    const seen = { port: 443, protocol: 'tcp', count: 3n, lastMs: BigInt(Date.now()) }
    server.node.connections.set(id, [
      { ...seen, name: 'wanted.example', verdict: Verdict.DENIED },
      { ...seen, name: '<b>\u202eevil.example', verdict: Verdict.DENIED },
      { ...seen, address: '192.0.2.7', verdict: Verdict.DENIED },
    ])
    otherId = await create({ timeout: 3_600 })
    browser = await openBrowser()
    signedIn = await openSignedInPage(browser, { url: server.url(), apiKey: server.apiKey })
  })
  after(async () => {
    await browser?.close()
    await server?.[Symbol.asyncDispose]()
  })

  const create = async (fields: object) => {
    const body = { templateID: 'base', ...fields }
    const { status, json, text } = await server.platform('POST', '/v2/sandboxes', body)
    assert.equal(status, 201, text)
    return String(Object(json).sandboxID)
  }

  test('a denied name is allowed with one click, and needs no more attention', async () => {
    const { page, go, watch } = signedIn
    await go('/')
    const attention = page.getByRole('region', { name: 'Needs attention' })
    const allow = attention.getByRole('button', { name: `Allow wanted.example in ${id}` })
    await allow.waitFor()
    await attention.getByText('192.0.2.7:443').waitFor()
    await attention.getByText('<b><U+202E>evil.example').waitFor()
    await create({ timeout: 110 })
    await attention.getByText(/ends in/).waitFor()
    await takeScreenshots(page, 'now-attention')
    assert.deepEqual(await findBarriers(page), [])
    await allow.click()
    await page.getByText('wanted.example is allowed').waitFor()
    await allow.waitFor({ state: 'detached' })
    const { json } = await server.platform('GET', `/sandboxes/${id}`)
    assert.deepEqual(Object(json).network, {
      allowOut: ['wanted.example'],
      denyOut: ['0.0.0.0/0'],
    })
    assert.deepEqual(await watch.findings(), [])
  })

  test('a second share link in the same tab shows its own sandbox', async () => {
    const cookie = await server.signIn('/bff/session', { apiKey: server.apiKey })
    const share = async (sandboxId: string) => {
      const path = `/bff/sandboxes/${sandboxId}/shares`
      const reply = await server.ask('POST', path, {
        headers: { cookie },
        body: { seconds: 3_600 },
      })
      assert.equal(reply.status, 201, reply.text)
      return String(Object(reply.json).token)
    }
    const { page, go } = signedIn
    const heading = (name: string) => page.getByRole('heading', { name, level: 1 })
    await go(`/share#${await share(id)}`)
    await heading(id).waitFor()
    // Only the fragment differs, so the browser does not load the page again.
    await page.evaluate('globalThis.isSamePage = true')
    await page.goto(new URL(`#${await share(otherId)}`, page.url()).href)
    await heading(otherId).waitFor()
    assert.equal(await page.evaluate('globalThis.isSamePage'), true)
  })
})
