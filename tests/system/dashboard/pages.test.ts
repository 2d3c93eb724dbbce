/** Lineage, timeline, share links and the operator's page in a real browser, with real sandboxes. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { findBarriers } from './accessibility.ts'
import { openBrowser } from './browser.ts'
import { watchPage } from './page-watch.ts'
import type { PageWatch } from './page-watch.ts'
import { takeScreenshots } from './screenshots.ts'
import { openSignedInPage } from './signed-in-page.ts'

const actionLimitMs = Number(process.env['ATOLL_TEST_ACTION_MS'] ?? 300_000)
const markup = '<img src=x onerror="window.hacked=1">\u202egpj.exe'
const adminToken = 'token-of-the-operator'

suite('the family, events, links and operator of a real installation', () => {
  let installation: Installation
  let origin: string
  let browser: Browser
  let page: Page
  let watch: PageWatch
  let root: Sandbox
  let fork: string

  const call = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${installation.url}${path}`, {
      method,
      headers: { 'x-api-key': installation.apiKey, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`)
    return text === '' ? {} : Object(JSON.parse(text))
  }

  before(async () => {
    installation = await install({
      ...{ ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '512', ATOLL_ADMIN_TOKEN: adminToken },
    })
    origin = `http://ui.localhost:${new URL(installation.url).port}`
    browser = await openBrowser()
    const { connection } = installation
    root = await Sandbox.create({
      ...{ ...connection, timeoutMs: 3_600_000, requestTimeoutMs: actionLimitMs },
      metadata: { owner: markup },
    })
    const forked = await call('POST', `/sandboxes/${root.sandboxId}/fork`, {
      ...{ timeout: 3600, count: 2 },
    })
    fork = forked[0].sandbox.sandboxID
    const saved = await call('POST', `/sandboxes/${fork}/snapshots`, { name: 'kept' })
    await call('POST', '/v2/sandboxes', { templateID: saved.snapshotID, timeout: 3600 })
    await call('DELETE', `/sandboxes/${forked[1].sandbox.sandboxID}`)
    const opened = await openSignedInPage(browser, installation)
    ;({ page, watch } = opened)
  })
  after(async () => {
    await browser?.close()
    await installation?.[Symbol.asyncDispose]()
  })

  const go = (path: string) => page.goto(`${origin}${path}`)
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const dialogButton = (name: string) =>
    page.getByRole('dialog').getByRole('button', { name, exact: true })
  const requireNoBarriers = async (checked = page) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await checked.emulateMedia({ colorScheme })
      assert.deepEqual(await findBarriers(checked), [], colorScheme)
    }
  }
  const newVisitor = async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    context.setDefaultTimeout(actionLimitMs)
    return context.newPage()
  }

  test('the family of a sandbox is a tree, and two of it are compared', async () => {
    const copy = await Sandbox.connect(fork, installation.connection)
    await copy.files.write(`/home/user/${markup.replaceAll('/', '')}`, 'of the fork\n')
    await go(`/sandboxes/${root.sandboxId}/lineage`)
    await page.getByText('snapshot', { exact: true }).waitFor()
    assert.equal(await page.locator('.family-rows li').count(), 5)
    await page.getByText(/fork, .*killed/).waitFor()
    await takeScreenshots(page, 'lineage')
    await requireNoBarriers()
    await page.getByLabel(`Compare ${root.sandboxId}`).check()
    await page.getByLabel(`Compare ${fork}`).check()
    await button('Compare two').click()
    await page.getByTitle(/^added: .*<U\+202E>gpj\.exe/).click()
    const differences = page.getByLabel('Differences')
    await differences.waitFor()
    assert.match(await differences.innerText(), /^\+of the fork$/m)
    const compared = new URL(page.url()).searchParams.get('compare')
    assert.equal(compared, `${fork},${root.sandboxId}`)
    await takeScreenshots(page, 'compare')
    await requireNoBarriers()
  })

  test('the page of a sandbox shows its events, also after its end', async () => {
    await call('POST', `/sandboxes/${fork}/pause`, {})
    await go(`/sandboxes/${fork}`)
    const events = page.getByRole('list', { name: /^Events/ })
    await events.getByText('Paused').waitFor()
    await call('POST', `/sandboxes/${fork}/connect`, { timeout: 3600 })
    await events.getByText('Resumed').waitFor()
    await page.locator('.uplot').first().waitFor()
    await takeScreenshots(page, 'timeline')
    await requireNoBarriers()
    await call('DELETE', `/sandboxes/${fork}`)
    await page.getByText('Last lines').waitFor()
    await events.getByText(/^Ended: .*killed/).waitFor()
    await takeScreenshots(page, 'timeline-ended')
    await requireNoBarriers()
  })

  test('a share link shows one sandbox to a visitor until it is revoked', async () => {
    await go(`/sandboxes/${root.sandboxId}`)
    await button('Share').click()
    await button('Create a link').click()
    const link = await page.getByLabel('Link', { exact: true }).innerText()
    await takeScreenshots(page, 'share-dialog')
    await requireNoBarriers()
    const shared = await newVisitor()
    const sharedWatch = await watchPage(shared)
    await shared.goto(link)
    await shared.getByRole('heading', { name: root.sandboxId }).waitFor()
    await shared.locator('.uplot').first().waitFor()
    assert.equal(await shared.getByRole('button').count(), 0)
    assert.deepEqual(await shared.context().cookies(), [])
    await takeScreenshots(shared, 'shared')
    await requireNoBarriers(shared)
    const token = new URL(link).hash.slice(1)
    const statusOf = (path: string, method = 'GET') =>
      shared.evaluate(
        async ([to, how, share]) => {
          const headers = { 'x-atoll-share': share ?? '' }
          return (await fetch(to ?? '', { method: how ?? 'GET', headers })).status
        },
        [path, method, token],
      )
    assert.equal(await statusOf('/bff/share/sandbox'), 200)
    assert.equal(await statusOf('/bff/share/sandbox', 'DELETE'), 403)
    assert.equal(await statusOf('/bff/share/files'), 404)
    for (const path of ['', `/${root.sandboxId}`, `/${fork}/logs`]) {
      assert.equal(await statusOf(`/bff/api/sandboxes${path}`), 401, path)
    }
    assert.equal(await statusOf(`/bff/api/sandboxes/${root.sandboxId}`, 'DELETE'), 401)
    await page.getByRole('button', { name: /^Revoke/ }).click()
    await shared.getByText('This link does not work any more').waitFor()
    assert.equal(await statusOf('/bff/share/sandbox'), 401)
    await takeScreenshots(shared, 'shared-revoked')
    await requireNoBarriers(shared)
    assert.deepEqual(await sharedWatch.findings(), [])
    await shared.context().close()
    assert.equal(await root.isRunning(), true)
  })

  test('the page of the operator asks a team for the token, and the team stays signed in', async () => {
    await go('/operator')
    await page.getByLabel("Operator's token").waitFor()
    await page.getByRole('link', { name: 'Sandboxes' }).click()
    await page.getByRole('heading', { name: 'Sandboxes', level: 1 }).waitFor()
  })

  test('an operator without a team drains a node, changes limits, and blocks a team', async () => {
    page = await newVisitor()
    const operatorWatch = await watchPage(page)
    await go('/operator')
    await page.getByLabel("Operator's token").fill('wrong')
    await button('Continue').click()
    await page.getByRole('alert').waitFor()
    await takeScreenshots(page, 'operator-sign-in')
    await requireNoBarriers()
    await page.getByLabel("Operator's token").fill(adminToken)
    await button('Continue').click()
    await page.getByRole('heading', { name: 'Teams' }).waitFor()
    await button('New team').click()
    await page.getByLabel('Name').fill(markup)
    await dialogButton('Create').click()
    const hostile = page.getByRole('row', { name: /<U\+202E>gpj\.exe/ })
    await hostile.waitFor()
    await button('Drain').click()
    await dialogButton('Drain').click()
    await button('Make ready').waitFor()
    await takeScreenshots(page, 'operator')
    await requireNoBarriers()
    await button('Make ready').click()
    await button('Drain').waitFor()
    await hostile.getByRole('button', { name: 'Limits' }).click()
    await page.getByLabel('Concurrent sandboxes').fill('77')
    await takeScreenshots(page, 'operator-limits')
    await requireNoBarriers()
    await dialogButton('Save').click()
    await hostile.getByText('/ 77').waitFor()
    await hostile.getByRole('button', { name: 'Block', exact: true }).click()
    await page.getByLabel('Reason').fill(markup)
    await takeScreenshots(page, 'operator-block')
    await dialogButton('Block').click()
    await hostile.getByText('blocked', { exact: true }).waitFor()
    await hostile.getByRole('button', { name: 'Unblock' }).click()
    await hostile.getByText('open', { exact: true }).waitFor()
    await button('Leave operator mode').click()
    await page.getByLabel("Operator's token").waitFor()
    const status = await page.evaluate(async () => (await fetch('/bff/operator/nodes')).status)
    assert.equal(status, 401)
    assert.deepEqual(await operatorWatch.findings(), [])
  })

  test('nothing of the sandboxes ran in the pages', async () => {
    assert.deepEqual(await watch.findings(), [])
  })
})
