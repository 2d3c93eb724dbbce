/** The dashboard as a person uses it, in a real browser, with real sandboxes. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { openBrowser } from './browser.ts'
import { watchPage } from './page-watch.ts'
import type { PageWatch } from './page-watch.ts'
import { compareChangedFile } from './changed-file.ts'
import { allowDeniedName } from './denied-name.ts'
import { findBarriers } from './accessibility.ts'
import { openProbePage } from './probe-page.ts'
import { takeScreenshots } from './screenshots.ts'

const actionLimitMs = Number(process.env['ATOLL_TEST_ACTION_MS'] ?? 120_000)
const markup = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'

suite('the dashboard of a real installation', () => {
  let installation: Installation
  let browser: Browser
  let page: Page
  let watch: PageWatch
  let origin: string
  let id: string

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '512' })
    origin = `http://ui.localhost:${new URL(installation.url).port}`
    browser = await openBrowser()
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    context.setDefaultTimeout(actionLimitMs)
    page = await context.newPage()
    watch = await watchPage(page)
  })
  after(async () => {
    await browser?.close()
    await installation?.[Symbol.asyncDispose]()
  })

  const connection = () => ({ ...installation.connection, timeoutMs: 600_000 })
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const field = (name: RegExp) => page.getByRole('textbox', { name })
  const heading = (name: string) => page.getByRole('heading', { name, exact: true, level: 1 })
  const go = (path: string) => page.goto(`${origin}${path}`)
  // The name of the dashboard is known to the browser alone, so the page sends these requests.
  const statusOf = (path: string) => page.evaluate(async (url) => (await fetch(url)).status, path)
  const headersOf = (path: string): Promise<Record<string, string>> =>
    page.evaluate(async (url) => Object.fromEntries((await fetch(url)).headers), path)
  const screenText = async () => {
    const rows = await page.locator('.xterm-rows > div').allInnerTexts()
    return rows.map((row) => row.replaceAll('\u00a0', ' ')).join('\n')
  }

  test('a visitor sees the sign-in page, and a wrong key shows the reason', async () => {
    await go('/sandboxes')
    await takeScreenshots(page, 'sign-in')
    await page.getByLabel('API key').fill(`e2b_${'0'.repeat(40)}`)
    await button('Sign in').click()
    assert.match(await page.getByRole('alert').innerText(), /does not exist/)
  })

  test('the link of the banner signs in once', async () => {
    const link = /http:\/\/ui\S+\/sign-in#\S+/.exec(installation.output())?.[0] ?? ''
    assert.ok(link.startsWith(origin), installation.output())
    await page.goto(link)
    await heading('Now').waitFor()
    assert.equal(new URL(page.url()).hash, '')
    const cookies = await page.context().cookies()
    assert.deepEqual(
      cookies.map(({ httpOnly, sameSite }) => [httpOnly, sameSite]),
      [[true, 'Strict']],
    )
    const otherContext = await browser.newContext()
    const secondPage = await otherContext.newPage()
    await secondPage.goto(link)
    await secondPage.getByRole('alert').waitFor()
    assert.match(await secondPage.getByRole('alert').innerText(), /used already/)
    await otherContext.close()
  })

  test('a sandbox is created, and a command runs in its terminal', async () => {
    await go('/sandboxes')
    await page.getByRole('heading', { name: 'No sandboxes yet' }).waitFor()
    await takeScreenshots(page, 'sandboxes-empty')
    await page.locator('.page-head').getByRole('button', { name: 'New sandbox' }).click()
    await page.getByText('Variables and metadata').click()
    await field(/^Metadata/).fill(`owner=${markup}\nname=abc\u202egpj.exe`)
    await takeScreenshots(page, 'new-sandbox')
    await button('Create').click()
    await page.locator('.xterm-screen').waitFor()
    id = /sandboxes\/(\w+)\/terminal/.exec(page.url())?.[1] ?? ''
    assert.match(id, /^i[a-z0-9]{20}$/)
    await waitFor('a prompt', async () => /\$ /.test(await screenText()))
    await page.keyboard.type('echo $((6 * 7))-$TERM')
    await page.keyboard.press('Enter')
    await waitFor('the output', async () => (await screenText()).includes('42-xterm-256color'))
    await takeScreenshots(page, 'terminal')
  })

  test('a terminal continues after a reload of the page', async () => {
    await page.keyboard.type('KEPT=still-here; echo kept-$((1+1))\n')
    await waitFor('the variable', async () => (await screenText()).includes('kept-2'))
    await page.reload()
    await page.locator('.xterm-screen').waitFor()
    await page.locator('.xterm-helper-textarea').waitFor({ state: 'attached' })
    await waitFor('the same shell', async () => {
      await page.locator('.xterm-screen').click()
      await page.keyboard.type('echo $KEPT\n')
      return (await screenText()).includes('still-here')
    })
    assert.equal(await page.locator('.terminal-tab').count(), 1)
  })

  test('a terminal that prints a lot stays usable', async () => {
    await page.keyboard.type(
      `clear; yes 0123456789abcdef | head -c 50000000; echo; echo all-$((1+1))-done\n`,
    )
    await waitFor(
      'the end of the output',
      async () => (await screenText()).includes('all-2-done'),
      {
        timeoutMs: 300_000,
      },
    )
    await page.keyboard.type('clear; echo after-$((2+2))\n')
    await waitFor('the next command', async () => (await screenText()).includes('after-4'))
  })

  test('a file is created, edited and saved', async () => {
    await page.getByRole('link', { name: 'Files' }).click()
    await button('New file').click()
    await field(/^Name/).fill('note.txt')
    await button('Create').click()
    const editor = page.getByLabel('Content of /home/user/note.txt')
    await editor.fill('written in the browser: ä\n')
    await takeScreenshots(page, 'files')
    await button('Save').click()
    await page.getByText('note.txt is saved').waitFor()
    const sandbox = await Sandbox.connect(id, connection())
    assert.equal(await sandbox.files.read('/home/user/note.txt'), 'written in the browser: ä\n')
  })

  test('a file is renamed, uploaded, downloaded and deleted', async () => {
    await page.getByRole('button', { name: 'Rename note.txt' }).click()
    await field(/^New name/).fill('renamed.txt')
    await button('Rename').click()
    await page.getByRole('button', { name: 'Delete renamed.txt' }).waitFor()
    const upload = { name: 'up.bin', mimeType: 'text/html', buffer: Buffer.from([0, 1, 2, 255]) }
    await page.locator('input[type=file]').setInputFiles(upload)
    await page.getByRole('button', { name: /^up\.bin/ }).click()
    await page.getByText('This file is not text').waitFor()
    const downloading = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download' }).click()
    const stream = await (await downloading).createReadStream()
    assert.deepEqual(Buffer.concat(await Array.fromAsync(stream)), upload.buffer)
    await page.getByRole('button', { name: 'Delete up.bin' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete up.bin' }).waitFor({ state: 'detached' })
  })

  test('changes since the template are listed, and a file is compared line by line', async () => {
    await compareChangedFile(page, await Sandbox.connect(id, connection()))
    await page.getByRole('link', { name: 'All files' }).click()
  })

  test('markup, escape sequences and direction overrides from a sandbox are only text', async () => {
    const sandbox = await Sandbox.connect(id, connection())
    const name = `${markup.replaceAll('/', '_')}\u202etxt.html`
    await sandbox.files.write(`/home/user/${name}`, markup)
    await sandbox.commands.run(
      `printf '%s\\n' '${markup}' '\u001b]0;title\u0007\u001b[2J\u202eevil'`,
    )
    await sandbox.commands.run(`head -c 3000000 /dev/zero | tr '\\0' a; echo '${markup}' >&2`)
    await go(`/sandboxes/${id}/files`)
    const row = page.locator('.tree-row', { hasText: '<U+202E>txt.html' })
    await row.click()
    await page.locator('.file-view textarea').waitFor()
    assert.equal(await page.locator('.file-view textarea').inputValue(), markup)
    await go(`/sandboxes/${id}/logs`)
    await page.locator('.log-line', { hasText: '<img src=x' }).first().waitFor()
    await takeScreenshots(page, 'logs')
    await go(`/sandboxes/${id}`)
    await page.getByText('abc<U+202E>gpj.exe').waitFor()
    await takeScreenshots(page, 'sandbox')
    assert.deepEqual(await findBarriers(page), [])
    await go('/sandboxes')
    await page.locator('.tag', { hasText: '<img' }).waitFor()
    await takeScreenshots(page, 'sandboxes')
    assert.deepEqual(await watch.findings(), [])
  })

  test('files of a sandbox are never pages of the dashboard', async () => {
    const sandbox = await Sandbox.connect(id, connection())
    await sandbox.files.write('/home/user/page.html', '<script>window.hacked=1</script>')
    const path = `/bff/sandboxes/${id}`
    const viewHeaders = await headersOf(`${path}/file?path=/home/user/page.html`)
    assert.equal(viewHeaders['content-type'], 'text/plain; charset=utf-8')
    assert.match(viewHeaders['content-security-policy'] ?? '', /default-src 'none'; sandbox/)
    const downloadHeaders = await headersOf(`${path}/download?path=/home/user/page.html`)
    assert.match(downloadHeaders['content-disposition'] ?? '', /^attachment/)
    assert.equal(downloadHeaders['content-type'], 'application/octet-stream')
  })

  test('a page of a sandbox cannot use the session or frame the dashboard', async () => {
    const sandbox = await Sandbox.connect(id, connection())
    const address = `http://8000-${id}.localhost:${new URL(installation.url).port}/`
    await using probe = await openProbePage(page, sandbox, { origin, address })
    assert.deepEqual(await probe.results(), {
      read: 'refused',
      write: 'refused',
      socket: 'refused',
      opener: 'refused',
    })
    const frames = await probe.frameContents()
    assert.equal(frames.length, 1)
    assert.doesNotMatch(frames[0] ?? '', /Atoll/)
    assert.ok(await Sandbox.connect(id, connection()))
  })

  test('network rules are changed, and a wrong rule shows an alert', async () => {
    await go(`/sandboxes/${id}/network`)
    await page.getByRole('combobox', { name: /^Internet/ }).selectOption('some')
    await field(/^Allowed destinations/).fill('not a domain!')
    await button('Apply').click()
    await page.getByRole('alert').waitFor()
    await field(/^Allowed destinations/).fill('pypi.org\n1.1.1.1')
    await button('Apply').click()
    await page.getByText('The rules are in force').waitFor()
    await allowDeniedName(page, await Sandbox.connect(id, connection()))
    const info = await fetch(`${installation.url}/sandboxes/${id}`, {
      headers: { 'x-api-key': installation.apiKey },
    })
    const { network } = JSON.parse(await info.text())
    const allowed = ['pypi.org', '1.1.1.1', 'wanted.example']
    assert.deepEqual([network.allowOut, network.denyOut], [allowed, ['0.0.0.0/0']])
  })

  test('processes are listed and killed', async () => {
    const sandbox = await Sandbox.connect(id, connection())
    await sandbox.commands.run('sleep 4321', { background: true, timeoutMs: 0 })
    await go(`/sandboxes/${id}/processes`)
    const row = page.getByRole('row', { name: /sleep 4321/ })
    await row.waitFor()
    await takeScreenshots(page, 'processes')
    await row.getByRole('button', { name: 'Kill' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Kill' }).click()
    await row.waitFor({ state: 'detached' })
  })

  test('a snapshot is saved, and a fork runs', async () => {
    await button('Snapshot').click()
    await field(/^Name/).fill('browser-made')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText(/Saved as/).waitFor()
    await button('Fork').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Fork' }).click()
    await page.getByText('1 fork runs').waitFor()
    await waitFor('the page of the fork', () => !page.url().includes(id))
    await page.getByRole('link', { name: 'Snapshots' }).click()
    await page.getByText('browser-made').first().waitFor()
    await takeScreenshots(page, 'snapshots')
  })

  test('viewing a paused sandbox does not resume it', async () => {
    const sandbox = await Sandbox.create({
      ...connection(),
      lifecycle: { onTimeout: 'pause', autoResume: true },
    })
    await go(`/sandboxes/${sandbox.sandboxId}`)
    await button('Pause').click()
    await page.getByRole('button', { name: 'Resume', exact: true }).waitFor()
    for (const tab of ' terminal files files?view=changes logs network processes'.split(' ')) {
      await go(`/sandboxes/${sandbox.sandboxId}/${tab}`)
      await page.getByRole('button', { name: 'Resume', exact: true }).waitFor()
    }
    await takeScreenshots(page, 'paused')
    assert.equal(await statusOf(`/bff/sandboxes/${sandbox.sandboxId}/file?path=/etc/hostname`), 409)
    const info = await Sandbox.getInfo(sandbox.sandboxId, connection())
    assert.equal(info.state, 'paused')
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
    await button('Pause').waitFor()
  })

  test('a template is built from a Dockerfile, and a failing step is named', async () => {
    await go('/templates?new=1')
    await field(/^Name/).fill('from-browser')
    await field(/^Dockerfile/).fill('FROM e2bdev/base\nRUN echo fine\nRUN echo why >&2; exit 7\n')
    await button('Build').click()
    await page.getByText(/Step \d+ failed/).waitFor({ timeout: 300_000 })
    await takeScreenshots(page, 'template')
    await go('/templates')
    await page.getByRole('link', { name: /from-browser/ }).waitFor()
    await takeScreenshots(page, 'templates')
  })

  test('a public template shows its size, and no builds', async () => {
    await go('/templates')
    await page.getByRole('link', { name: 'base', exact: true }).click()
    await page.getByText('Only its owner sees and starts builds.').waitFor()
    assert.equal(await button('Delete').count(), 0)
    await takeScreenshots(page, 'public-template')
  })

  test('a secret and a key are created', async () => {
    await go('/secrets')
    await button('New secret').click()
    await field(/^Name/).fill('browser-key')
    await page
      .getByRole('dialog')
      .getByLabel(/^Value/)
      .fill('hidden-value')
    await button('Save').click()
    await page.getByRole('cell', { name: 'browser-key' }).waitFor()
    await takeScreenshots(page, 'secrets')
    await go('/team')
    await button('New key').click()
    await field(/^Name/).fill('second')
    await button('Create').click()
    await page.getByText(/^e2b_[0-9a-f]{40}$/).waitFor()
    await page
      .getByRole('dialog', { name: /^The key/ })
      .getByRole('button', { name: 'Close' })
      .click()
    await page.getByRole('row', { name: /second/ }).waitFor()
    await takeScreenshots(page, 'team')
  })

  test('the keyboard selects sandboxes, and one action kills all selected sandboxes', async () => {
    await go('/sandboxes')
    await page.locator('.grid-body .grid-row').first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.getByText('1 selected').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('no such sandbox')
    await page.getByText('No sandbox matches').waitFor()
    assert.match(page.url(), /q=no/)
    await button('Clear the filters').click()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('go to now')
    await page.keyboard.press('Enter')
    await heading('Now').waitFor()
    await takeScreenshots(page, 'now')
    await go('/sandboxes')
    await page.getByLabel('Select all matches').check()
    await page
      .getByRole('region', { name: 'Selected sandboxes' })
      .getByRole('button', { name: 'Kill' })
      .click()
    await page.getByRole('dialog').getByRole('button', { name: 'Kill' }).click()
    await page.getByRole('heading', { name: 'No sandboxes yet' }).waitFor()
    const remaining = await Sandbox.list(connection()).nextItems()
    assert.deepEqual(remaining, [])
  })

  test('an ended sandbox shows its last lines', async () => {
    await go(`/sandboxes/${id}`)
    await page.getByText('Last lines').waitFor()
    await page.getByText(`Sandbox ${id} was not found: it was killed`).waitFor()
    await page.locator('.log-line').first().waitFor()
    await takeScreenshots(page, 'ended')
  })

  test('ended sandboxes are listed with the reason of their end', async () => {
    await go('/sandboxes')
    await page.getByLabel('State').selectOption('ended')
    await page.getByRole('row', { name: new RegExp(`${id}.*was killed`) }).waitFor()
    assert.match(page.url(), /state=ended/)
    await takeScreenshots(page, 'ended-sandboxes')
  })

  test('pages have no barriers for assistive technology', async () => {
    const barriers: Record<string, string[]> = {}
    for (const path of ['/', '/sandboxes', '/templates', '/snapshots', '/secrets', '/team']) {
      await go(path)
      await page.locator('h1').waitFor()
      await waitFor(
        `${path} to load`,
        async () => (await page.locator('[aria-busy]').count()) === 0,
      )
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        barriers[`${path} in ${colorScheme}`] = await findBarriers(page)
      }
    }
    const pagesWithBarriers = Object.entries(barriers).filter(([, rules]) => rules.length > 0)
    assert.deepEqual(Object.fromEntries(pagesWithBarriers), {})
  })

  test('sign-out ends the session', async () => {
    await button('Sign out').click()
    await heading('Sign in').waitFor()
    assert.equal(await statusOf('/bff/session'), 401)
    assert.deepEqual(await watch.findings(), [])
  })
})
