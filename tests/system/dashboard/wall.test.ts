/** The wall of the dashboard: 20 real sandboxes with a live terminal each, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { Sandbox } from 'e2b'
import { waitFor } from '@atoll/kit/wait'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { findBarriers } from './accessibility.ts'
import { openBrowser } from './browser.ts'
import { takeScreenshots } from './screenshots.ts'
import { openSignedInPage } from './signed-in-page.ts'
import type { SignedInPage } from './signed-in-page.ts'
import { terminalScreen } from './terminal-screen.ts'

const count = 20

suite('the wall of the dashboard', () => {
  let installation: Installation
  let browser: Browser
  let signedIn: SignedInPage
  const ids: string[] = []

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '128' })
    browser = await openBrowser()
    signedIn = await openSignedInPage(browser, installation)
    for (let index = 0; index < count; index += 1) ids.push((await create()).sandboxId)
  })
  after(async () => {
    await browser?.close()
    await installation?.[Symbol.asyncDispose]()
  })

  const connection = () => ({ ...installation.connection, timeoutMs: 3_600_000 })
  const create = () =>
    Sandbox.create({
      ...connection(),
      requestTimeoutMs: 300_000,
      lifecycle: { onTimeout: 'pause', autoResume: true },
    })
  const tile = (id: string) => signedIn.page.getByRole('region', { name: `Sandbox ${id}` })
  const screenOf = (id: string) => terminalScreen(signedIn.page, tile(id))
  const stateOf = async (id: string) => (await Sandbox.getInfo(id, connection())).state

  test('selected sandboxes of the list open as a wall with their last lines', async () => {
    const { page, go } = signedIn
    const [first = '', second = ''] = ids
    const sandbox = await Sandbox.connect(first, connection())
    await go('/sandboxes')
    await page.locator('.grid-row', { hasText: first }).getByRole('checkbox').check()
    await page.locator('.grid-row', { hasText: second }).getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Wall', exact: true }).click()
    await tile(second).waitFor()
    assert.equal(await page.locator('.wall-tile').count(), 2)
    await sandbox.commands.run(`echo '<img src=x onerror="window.hacked=1">' line-$((30 + 3))`)
    await tile(first).getByText('line-33').waitFor()
    await takeScreenshots(page, 'wall-lines')
    assert.deepEqual(await findBarriers(page), [])
  })

  test(`${count} terminals work at once, over one WebSocket`, async () => {
    const { page, go, sockets } = signedIn
    await go(`/wall?ids=${ids.join(',')}`)
    await page.getByRole('button', { name: 'Terminals', exact: true }).click()
    for (const [index, id] of ids.entries()) {
      await screenOf(id).answers(
        `echo t${index}-$((100 + ${index}))`,
        new RegExp(`t${index}-${100 + index}`),
      )
    }
    assert.deepEqual([...new Set(sockets.map((url) => new URL(url).pathname))], ['/bff/live'])
    await takeScreenshots(page, 'wall-terminals')
  })

  test('a terminal that prints 50 MB holds up no other one, Ctrl-C stops a flood, and all stay usable', async () => {
    const { page, watch } = signedIn
    const [first = '', second = '', third = ''] = ids
    const flooding = screenOf(first)
    await flooding.run('clear; yes 0123456789abcdef | head -c 50000000; echo all-$((1 + 1))-done')
    await flooding.shows(/(0123456789abcdef\s+){5}/)
    await screenOf(second).answers('clear; echo beside-$((7 + 7))', /beside-14/)
    await takeScreenshots(page, 'wall-flood')
    await flooding.shows(/all-2-done/)
    await flooding.answers('clear; echo after-$((2 + 2))', /after-4/)
    const endless = screenOf(third)
    await endless.run('clear; yes endless')
    await endless.shows(/(endless\s+){5}/)
    await page.keyboard.press('Control+c')
    await endless.answers('clear; echo free-$((3 + 3))', /free-6/)
    for (const [index, id] of ids.entries()) {
      const output = new RegExp(`still-${index}-${200 + index}`)
      await screenOf(id).answers(`clear; echo still-${index}-$((200 + ${index}))`, output)
    }
    assert.deepEqual(await watch.findings(), [])
  })

  test('a sandbox is focused, paused and killed, and a paused one is not resumed', async () => {
    const { page } = signedIn
    const [first = '', second = ''] = ids
    await tile(first)
      .getByRole('button', { name: `Focus ${first}` })
      .click()
    await tile(second).waitFor({ state: 'hidden' })
    await screenOf(first).run('clear; tput cols')
    await takeScreenshots(page, 'wall-focus')
    await page.getByRole('button', { name: 'Show all' }).click()
    await tile(second).waitFor()
    await tile(first)
      .getByRole('button', { name: `Pause ${first}` })
      .click()
    await tile(first).getByText('paused', { exact: true }).waitFor()
    await page.reload()
    await tile(first).getByText('paused', { exact: true }).waitFor()
    await tile(first).getByRole('log').waitFor()
    await screenOf(second).answers('clear; echo again-$((4 + 5))', /again-9/)
    assert.equal(await stateOf(first), 'paused')
    await tile(second)
      .getByRole('button', { name: `Kill ${second}` })
      .click()
    await page.getByRole('dialog').getByRole('button', { name: 'Kill' }).click()
    await tile(second).getByText('ended', { exact: true }).waitFor()
    await takeScreenshots(page, 'wall-paused')
    await waitFor('the end of the sandbox', () =>
      Sandbox.getInfo(second, connection()).then(
        () => false,
        () => true,
      ),
    )
    assert.equal(await stateOf(first), 'paused')
  })
})
