/** Live parts of the dashboard, in a real browser: lists, logs and terminals over one WebSocket. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { findBarriers } from './accessibility.ts'
import { openBrowser } from './browser.ts'
import { takeScreenshots } from './screenshots.ts'
import { openSignedInPage } from './signed-in-page.ts'
import type { SignedInPage } from './signed-in-page.ts'
import { terminalScreen } from './terminal-screen.ts'
import type { TerminalScreen } from './terminal-screen.ts'

suite('the live connection of the dashboard', () => {
  let installation: Installation
  let browser: Browser
  let signedIn: SignedInPage
  let screen: TerminalScreen
  let sandbox: Sandbox

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '512' })
    browser = await openBrowser()
    signedIn = await openSignedInPage(browser, installation)
    screen = terminalScreen(signedIn.page)
  })
  after(async () => {
    await browser?.close()
    await installation?.[Symbol.asyncDispose]()
  })

  const connection = () => ({ ...installation.connection, timeoutMs: 3_600_000 })

  test('a sandbox that a program creates appears in the list, then its log lines', async () => {
    const { page, go, sockets } = signedIn
    await go('/sandboxes')
    await page.getByRole('heading', { name: 'No sandboxes yet' }).waitFor()
    sandbox = await Sandbox.create(connection())
    await page.locator('.grid-row', { hasText: sandbox.sandboxId }).waitFor()
    await go(`/sandboxes/${sandbox.sandboxId}/logs`)
    await page.getByRole('log').waitFor()
    await sandbox.commands.run('echo seen-$((40 + 2))')
    await page.locator('.log-line', { hasText: 'seen-42' }).waitFor()
    await go('/sandboxes')
    await page
      .locator('.grid-row', { hasText: sandbox.sandboxId })
      .getByText('seen-42', { exact: true })
      .waitFor()
    assert.deepEqual([...new Set(sockets.map((url) => new URL(url).pathname))], ['/bff/live'])
  })

  test('a terminal answers, and Ctrl-C stops a flood', async () => {
    const { page, go } = signedIn
    await go(`/sandboxes/${sandbox.sandboxId}/terminal`)
    await screen.shows(/\$\s*$/)
    await screen.answers('echo $((6 * 7))-$TERM', /42-xterm-256color/)
    await screen.answers(
      'yes flooding-the-terminal-without-end',
      /(flooding-the-terminal-without-end\s+){5}/,
    )
    await page.keyboard.press('Control+c')
    await screen.shows(/\$\s*$/)
    await screen.answers('clear; echo after-$((2 + 2))', /after-4/)
  })

  test('markup, escape sequences and a line of 10 MB are only text', async () => {
    const { page, watch } = signedIn
    const title = await page.title()
    await screen.run(
      `printf '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\\n'`,
    )
    await screen.shows(/<img src=x/)
    await screen.run(
      String.raw`printf '\033]0;owned\007\033]52;c;b3duZWQ=\007\033]8;;javascript:alert(1)\007link\033]8;;\007\033[999999999;999999999H\033[?1049h\033[?1049l\n'; reset; echo sane-$((1 + 1))`,
    )
    await screen.shows(/sane-2/)
    await screen.answers(
      `head -c 10000000 /dev/zero | tr '\\0' a; echo; clear; echo long-$((1 + 2))`,
      /long-3/,
    )
    assert.equal(await page.title(), title)
    assert.deepEqual(await watch.findings(), [])
  })

  test('after a crash of the server the page reconnects, and the terminal has the same shell', async () => {
    const { page } = signedIn
    await screen.answers('clear; KEPT=still-here; echo set-$((1 + 1))', /set-2/)
    await installation.crash()
    await page.getByText('The connection to the server is lost').waitFor()
    await takeScreenshots(page, 'connection-lost')
    await installation.start()
    await page.getByText('The connection to the server is lost').waitFor({ state: 'detached' })
    await screen.shows(/Connected to process \d+ again\.\s*\n[^\n]*\$ /)
    await screen.answers('echo $KEPT-$((3 + 4))', /still-here-7/)
    assert.equal(await page.locator('.terminal-tab').count(), 1)
  })

  test('a terminal is recorded, also through a crash of the server, and replayed', async () => {
    const { page, go, watch } = signedIn
    await page.getByRole('button', { name: 'Record', exact: true }).click()
    await page.getByRole('button', { name: 'Stop recording' }).waitFor()
    await screen.answers(`echo 'first <b>markup</b>' part-$((4 + 4))`, /part-8/)
    await installation.crash()
    await page.getByText('The connection to the server is lost').waitFor()
    await installation.start()
    await page.getByText('The connection to the server is lost').waitFor({ state: 'detached' })
    await screen.answers('clear; echo second-part-$((5 + 5))', /second-part-10/)
    await takeScreenshots(page, 'recording-terminal')
    await page.getByRole('button', { name: 'Stop recording' }).click()
    await page.getByRole('button', { name: 'Record', exact: true }).waitFor()
    await page.getByRole('toolbar').getByRole('link', { name: 'Recordings' }).click()
    const row = page.getByRole('row', { name: new RegExp(sandbox.sandboxId) })
    await row.waitFor()
    assert.equal(await page.getByRole('row').count(), 2)
    await takeScreenshots(page, 'recordings')
    assert.deepEqual(await findBarriers(page), [])
    const downloading = page.waitForEvent('download')
    await row.getByRole('link', { name: 'Download' }).click()
    const stream = await (await downloading).createReadStream()
    const [header = '', ...lines] = Buffer.concat(await Array.fromAsync(stream))
      .toString()
      .trimEnd()
      .split('\n')
    assert.equal(JSON.parse(header).version, 2)
    const output = lines
      .map((line) => JSON.parse(line))
      .filter(([, code]) => code === 'o')
      .map(([, , text]) => text)
      .join('')
    assert.match(output, /part-8[^]*second-part-10/)
    await row.getByRole('link', { name: 'Replay' }).click()
    await screen.shows(/second-part-10/)
    await takeScreenshots(page, 'replay')
    assert.deepEqual(await findBarriers(page), [])
    assert.deepEqual(await watch.findings(), [])
    await go('/recordings')
    await row.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'No recordings' }).waitFor()
    await takeScreenshots(page, 'recordings-empty')
  })

  test('sign-out in one page ends the live connection of another', async () => {
    const { page } = signedIn
    const other = await page.context().newPage()
    await other.goto(page.url())
    await other.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
    await other.close()
  })
})
