/** Most pages of the dashboard at the width of a phone, in a real browser, with a simulated node. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { Verdict } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { startDashboardUnderTest } from '@atoll/server/sim/dashboard-client'
import type { DashboardUnderTest } from '@atoll/server/sim/dashboard-client'
import { findBarriers } from './accessibility.ts'
import { openBrowser } from './browser.ts'
import { fewFrames, takeScreenshots } from './screenshots.ts'
import { openSignedInPage } from './signed-in-page.ts'
import type { SignedInPage } from './signed-in-page.ts'

const adminToken = 'token-of-the-operator'
const long = 'a-name-without-any-place-to-break-it-0123456789-0123456789'

/** Names what is wider than the screen, and buttons that cover the text of a snippet. */
const findFaults = `(() => {
  const faults = []
  for (const box of document.querySelectorAll('html, body, main, .page, .panel, .scroll-x, dialog')) {
    if (box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
      faults.push(box.tagName + '.' + box.className + ' ' + box.scrollWidth + ' > ' + box.clientWidth)
  }
  for (const snippet of document.querySelectorAll('.snippet')) {
    const text = snippet.querySelector('pre').getBoundingClientRect()
    const button = snippet.querySelector('button').getBoundingClientRect()
    const isBeside = button.left >= text.right || button.bottom <= text.top
    if (!isBeside) faults.push('Copy covers a snippet')
  }
  return faults
})()`

suite('the dashboard on a phone', () => {
  let server: DashboardUnderTest
  let browser: Browser
  let signedIn: SignedInPage
  let page: Page
  let id: string

  const change = async (method: string, path: string, body?: object) => {
    const { status, json, text } = await server.platform(method, path, body)
    assert.ok(status < 300, `${method} ${path}: ${status} ${text}`)
    return Object(json)
  }
  const create = async () => {
    const body = { templateID: 'base', timeout: 3_600, metadata: { owner: long } }
    return String((await change('POST', '/v2/sandboxes', body)).sandboxID)
  }

  before(async () => {
    server = await startDashboardUnderTest({ ATOLL_ADMIN_TOKEN: adminToken })
    browser = await openBrowser()
    signedIn = await openSignedInPage(browser, { url: server.url(), apiKey: server.apiKey })
    page = signedIn.page
  })
  after(async () => {
    await browser?.close()
    await server?.[Symbol.asyncDispose]()
  })

  /** Takes screenshots of the page, then requires that it fits a phone. */
  const requireFit = async (name: string) => {
    await takeScreenshots(page, name)
    await page.setViewportSize({ width: 390, height: 780 })
    await page.evaluate(fewFrames)
    assert.deepEqual(await page.evaluate(findFaults), [], name)
    assert.deepEqual(await findBarriers(page), [], name)
    await page.setViewportSize({ width: 1280, height: 800 })
  }
  const heading = (name: string) => page.getByRole('heading', { name }).first()

  test('empty pages fit, with their snippets', async () => {
    for (const [path, title] of [
      ['/sandboxes', 'No sandboxes yet'],
      ['/sandboxes?state=ended', 'No sandbox has ended'],
      ['/snapshots', 'No snapshots yet'],
      ['/secrets', 'No secrets yet'],
      ['/recordings', 'No recordings'],
      ['/templates', 'Build your own'],
      ['/wall', ''],
    ] as const) {
      await signedIn.go(path)
      if (title) await heading(title).waitFor()
      else await page.locator('.empty').waitFor()
      await requireFit(`empty${path.replaceAll(/[/?=]/g, '-')}`)
    }
  })

  test('lists fit, with long names', async () => {
    id = await create()
    const fields = { stream: 'stdout' }
    server.node.logs.write(id, { at: Date.now(), message: `${long} ${long}`, fields })
    const seen = { port: 443, protocol: 'tcp', count: 3n, lastMs: BigInt(Date.now()) }
    server.node.connections.set(id, [
      { ...seen, name: `${long}.example`, verdict: Verdict.DENIED },
      { ...seen, address: '2001:db8:1111:2222:3333:4444:5555:6666', verdict: Verdict.ALLOWED },
    ])
    const ended = await create()
    await change('DELETE', `/sandboxes/${ended}`)
    await change('POST', `/sandboxes/${id}/snapshots`, { name: long })
    await change('POST', '/secrets', { name: long, value: 'x' })
    await change('POST', '/api-keys', { name: long })
    for (const [path, text] of [
      ['/', 'was denied'],
      ['/sandboxes', id],
      ['/sandboxes?state=ended', ended],
      ['/snapshots', long],
      ['/secrets', long],
      ['/team', long],
      ['/templates', 'base'],
      ['/wall', id],
    ] as const) {
      await signedIn.go(path)
      await page.getByText(text).first().waitFor()
      await requireFit(`list${path.replaceAll(/[/?=]/g, '-')}`)
    }
  })

  test('the parts of a sandbox fit', async () => {
    for (const [part, text] of [
      ['', 'CPU'],
      ['/logs', long],
      ['/network', `${long}.example`],
      ['/lineage', id],
    ] as const) {
      await signedIn.go(`/sandboxes/${id}${part}`)
      await page.locator('main').getByText(text).first().waitFor()
      await requireFit(`sandbox${part.replaceAll('/', '-') || '-overview'}`)
    }
  })

  test('the page of the operator fits', async () => {
    await signedIn.go('/operator')
    await page.getByLabel("Operator's token").fill(adminToken)
    await page.getByRole('button', { name: 'Continue' }).click()
    await heading('Teams').waitFor()
    await page.getByRole('button', { name: 'New team' }).click()
    await page.getByLabel('Name').fill(long)
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await page.getByText(long).first().waitFor()
    await requireFit('operator-lists')
  })

  test('dialogs fit', async () => {
    for (const [path, button] of [
      ['/sandboxes', 'New sandbox'],
      ['/templates', 'New template'],
      ['/secrets', 'New secret'],
      ['/team', 'New key'],
      [`/sandboxes/${id}`, 'Fork'],
      [`/sandboxes/${id}`, 'Share'],
      [`/sandboxes/${id}`, 'Snapshot'],
      [`/sandboxes/${id}`, 'Set time'],
      [`/sandboxes/${id}`, 'Kill'],
    ] as const) {
      await signedIn.go(path)
      await page.getByRole('button', { name: button, exact: true }).first().click()
      await page.getByRole('dialog').waitFor()
      await requireFit(`dialog-${button.toLowerCase().replaceAll(' ', '-')}`)
    }
  })
})
