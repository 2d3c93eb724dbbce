/** The list of sandboxes of the dashboard, in a real browser, with hundreds of sandboxes of a simulated node. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { waitFor } from '@atoll/kit/wait'
import { startDashboardUnderTest } from '@atoll/server/sim/dashboard-client'
import type { DashboardUnderTest } from '@atoll/server/sim/dashboard-client'
import { findBarriers } from './accessibility.ts'
import { openBrowser } from './browser.ts'
import { takeScreenshots } from './screenshots.ts'
import { openSignedInPage } from './signed-in-page.ts'
import type { SignedInPage } from './signed-in-page.ts'

const count = 260
const limitMs = 300_000

suite('the list of sandboxes of the dashboard', () => {
  let server: DashboardUnderTest
  let browser: Browser
  let signedIn: SignedInPage
  let page: Page
  const ids: string[] = []

  before(async () => {
    server = await startDashboardUnderTest({ ATOLL_TEAM_CONCURRENT_SANDBOXES: '1000' })
    for (let index = 0; index < count; index += 1) {
      ids.push(await create({ owner: index % 4 === 0 ? 'ann' : 'bob', job: `job-${index}` }))
    }
    browser = await openBrowser()
    signedIn = await openSignedInPage(browser, { url: server.url(), apiKey: server.apiKey })
    page = signedIn.page
  })
  after(async () => {
    await browser?.close()
    await server?.[Symbol.asyncDispose]()
  })

  const create = async (metadata: object) => {
    const body = { templateID: 'base', timeout: 3_600 - ids.length, metadata }
    const { status, json, text } = await server.platform('POST', '/v2/sandboxes', body)
    assert.equal(status, 201, text)
    return String(Object(json).sandboxID)
  }
  const matches = async (query: string) =>
    Number((await server.platform('GET', `/v2/sandboxes?${query}`)).headers['x-total-matches'])
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const table = () => page.getByRole('table', { name: 'Sandboxes' })
  const firstRow = () => page.locator('.grid-body .grid-row').first()
  /** Waits until the table says that it has so many rows, loaded or not. */
  const shows = (rows: number) =>
    page.locator(`[role=table][aria-rowcount="${rows}"]`).waitFor({ timeout: limitMs })
  const row = (id: string) => page.locator('.grid-row', { hasText: id })

  test('rows load as they come into view, down to the last one', async () => {
    await signedIn.go('/sandboxes')
    await shows(count)
    await row(ids.at(-1) ?? '').waitFor()
    assert.equal(await row(ids[0] ?? '').count(), 0)
    await page.locator('.grid-body').evaluate((body) => body.scrollTo(0, body.scrollHeight))
    await row(ids[0] ?? '').waitFor()
    await takeScreenshots(page, 'table-end')
  })

  test('a row shows the last line that its sandbox printed, and hostile characters are visible', async () => {
    const id = ids.at(-1) ?? ''
    await signedIn.go('/sandboxes')
    await shows(count)
    const message = '\u001b[31m<b>\u202efirst line\u001b[0m'
    server.node.logs.write(id, { at: Date.now(), message, fields: { stream: 'stdout' } })
    await row(id).getByText('<b><U+202E>first line', { exact: true }).waitFor()
    const later = { at: Date.now() + 1, message: 'second line', fields: { stream: 'stderr' } }
    server.node.logs.write(id, later)
    await row(id).getByText('second line', { exact: true }).waitFor()
    await takeScreenshots(page, 'table-last-line')
    assert.deepEqual(await findBarriers(page), [])
  })

  test('the command menu finds a sandbox on the server, also when Enter comes before the answer', async () => {
    await signedIn.go('/sandboxes')
    await shows(count)
    await page.keyboard.press('Control+k')
    const menu = page.getByRole('dialog', { name: 'Commands' })
    await menu.getByRole('option', { name: ids.at(-1) ?? '' }).waitFor()
    await menu.getByRole('combobox').fill('job-17 owner=bob')
    await menu.getByRole('option', { name: ids[17] ?? '' }).waitFor()
    assert.equal(await menu.getByRole('option', { name: ids[18] ?? '' }).count(), 0)
    await takeScreenshots(page, 'command-menu')
    assert.deepEqual(await findBarriers(page), [])
    await menu.getByRole('combobox').fill(ids[3] ?? '')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/sandboxes/${ids[3]}`)
  })

  test('the server searches, filters and sorts all sandboxes, and the URL keeps it', async () => {
    await signedIn.go('/sandboxes')
    await page.getByLabel('Search').fill('JOB-7 owner=bob')
    await shows(await matches('search=job-7+owner%3Dbob'))
    await row(ids[7] ?? '').waitFor()
    assert.match(page.url(), /q=JOB-7/)
    await page.getByLabel('Search').fill('')
    await shows(count)
    await button('Time left ↓').or(button('Time left')).first().click()
    await waitFor('the first end at the top', async () => {
      if (!page.url().includes('order=asc')) await button('Time left ↓').click()
      return (await firstRow().innerText()).includes(ids.at(-1) ?? '?')
    })
    assert.match(page.url(), /sort=ends&order=asc/)
    await firstRow().getByRole('button', { name: 'owner=bob' }).click()
    await shows(await matches('metadata=owner%3Dbob'))
    assert.match(page.url(), /metadata=owner%3Dbob/)
    await page.reload()
    await shows(await matches('metadata=owner%3Dbob'))
    await takeScreenshots(page, 'table-filtered')
    await page.getByRole('button', { name: /owner=bob ✕/ }).click()
    await shows(count)
  })

  test('an action on all matches names their number, and changes them and no other', async () => {
    const bob = await matches('metadata=owner%3Dbob')
    await signedIn.go('/sandboxes?metadata=owner%3Dbob')
    await shows(bob)
    await page.getByLabel('Select all matches').check()
    await page.getByText(`All ${bob} matches selected`).waitFor()
    await button('Pause').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('heading', { name: `Pause ${bob} sandboxes?` }).waitFor()
    await takeScreenshots(page, 'bulk-question')
    assert.deepEqual(await findBarriers(page), [])
    assert.equal(await matches('state=paused'), 0)
    await dialog.getByRole('button', { name: `Pause ${bob}` }).click()
    await page.getByText(`${bob} sandboxes paused`).waitFor()
    assert.equal(await matches('state=paused'), bob)
    assert.equal(await matches('state=paused&metadata=owner%3Dann'), 0)
  })

  test('the state decides the order', async () => {
    await signedIn.go('/sandboxes')
    await shows(count)
    const state = page.getByRole('columnheader', { name: /^State/ }).getByRole('button')
    for (const [order, first] of [
      ['desc', 'running'],
      ['asc', 'paused'],
    ]) {
      await state.click()
      await waitFor(`${first} sandboxes at the top`, async () =>
        (await firstRow().innerText()).includes(first ?? '?'),
      )
      assert.equal(new URL(page.url()).searchParams.get('sort'), 'state')
      assert.equal(new URL(page.url()).searchParams.get('order') ?? 'desc', order)
    }
  })

  test('the result says what failed and why', async () => {
    await signedIn.go('/sandboxes?metadata=owner%3Dann')
    const ann = await matches('metadata=owner%3Dann')
    await shows(ann)
    await page.getByLabel('Select all matches').check()
    await button('Pause').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('heading', { name: `Pause ${ann} sandboxes?` }).waitFor()
    assert.equal((await server.platform('POST', `/sandboxes/${ids[0]}/pause`, {})).status, 204)
    await dialog.getByRole('button', { name: `Pause ${ann}` }).click()
    await dialog.getByText(`${ann - 1} paused, 1 failed`).waitFor()
    await dialog.getByRole('link', { name: ids[0] ?? '' }).waitFor()
    await takeScreenshots(page, 'bulk-result')
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await table().waitFor()
    assert.deepEqual(await signedIn.watch.findings(), [])
  })
})
