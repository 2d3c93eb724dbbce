/** Parts of the dashboard that are loaded late, in a real browser. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { build } from 'esbuild'
import type { Browser } from 'playwright-core'
import { repository } from '../installation.ts'
import { newPatientPage, openBrowser } from './browser.ts'

/**
 * Shows a part at two places. The part arrives after the second place was drawn as loading, and before its effects run, which
 * wait for a frame.
 */
const program = (outcome: string) => `
import { render } from 'preact'
import { lazy } from './parts/lazy.tsx'

const { promise, resolve, reject } = Promise.withResolvers()
let calls = 0
const Part = lazy(() => (calls += 1, promise))
const place = () => document.body.appendChild(document.createElement('div'))
const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))

render(<Part />, place())
while (calls === 0) await frame()
render(<Part />, place())
${outcome}
`

suite('a part of the page that is loaded late', () => {
  let browser: Browser

  before(async () => {
    browser = await openBrowser()
  })
  after(() => browser?.close())

  test('is shown at every place that waits for it', async () => {
    const page = await newPatientPage(browser)
    await page.addScriptTag({
      type: 'module',
      content: await bundle(program('resolve(() => <p>shown</p>)')),
    })
    await page.getByText('shown').nth(1).waitFor()
    assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0)
  })

  test('offers to load the page again at every place if it cannot be loaded', async () => {
    const page = await newPatientPage(browser)
    await page.addScriptTag({
      type: 'module',
      content: await bundle(program("reject(new Error('gone'))")),
    })
    await page.getByRole('button', { name: 'Reload the page' }).nth(1).waitFor()
  })
})

async function bundle(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, loader: 'tsx', resolveDir: join(repository, 'apps/dashboard/src') },
    ...{ bundle: true, write: false, format: 'esm', target: 'es2022', logLevel: 'silent' },
    ...{ jsx: 'automatic', jsxImportSource: 'preact' },
  })
  return outputFiles[0]?.text ?? ''
}
