import type { Page } from 'playwright-core'

/** Collects signs that content of a sandbox ran, or that the page broke its own policy. */
export interface PageWatch {
  findings(): Promise<string[]>
}

/**
 * Browsers log every failed request. The first request for a session fails with 401 before sign-in, and requests fail
 * while a test has stopped the server, or it starts again.
 */
const expectedError =
  /Failed to load resource: (the server responded with a status of (4\d\d|503)|net::ERR_CONNECTION_(REFUSED|RESET))|WebSocket connection to '[^']*\/bff\/live' failed/

export async function watchPage(page: Page): Promise<PageWatch> {
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`))
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    if (message.type() === 'error' && !expectedError.test(message.text()))
      problems.push(message.text())
  })
  return {
    async findings() {
      const hasScriptRun = await page.evaluate(() => 'hacked' in globalThis)
      return hasScriptRun ? [...problems, 'a script of a sandbox ran'] : [...problems]
    },
  }
}
