import type { Browser, Page } from 'playwright-core'
import type { Installation } from '../installation.ts'
import { watchPage } from './page-watch.ts'
import type { PageWatch } from './page-watch.ts'

const actionLimitMs = 300_000

export interface SignedInPage {
  readonly page: Page
  readonly watch: PageWatch
  /** Addresses of the WebSockets that the page has opened, each once per connection. */
  readonly sockets: readonly string[]
  go(path: string): Promise<unknown>
}

/** Opens the dashboard of an installation with its first API key. */
export async function openSignedInPage(
  browser: Browser,
  installation: Pick<Installation, 'url' | 'apiKey'>,
): Promise<SignedInPage> {
  const origin = `http://ui.localhost:${new URL(installation.url).port}`
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  context.setDefaultTimeout(actionLimitMs)
  const page = await context.newPage()
  const watch = await watchPage(page)
  const sockets: string[] = []
  page.on('websocket', (socket) => sockets.push(socket.url()))
  const go = (path: string) => page.goto(`${origin}${path}`)
  await go('/')
  await page.getByLabel('API key').fill(installation.apiKey)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Now', exact: true, level: 1 }).waitFor()
  return { page, watch, sockets, go }
}
