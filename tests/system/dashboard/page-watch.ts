import type { Page } from 'playwright-core'

/** Collects signs that content of a sandbox ran, or that the page broke its own policy. */
export interface PageWatch {
  findings(): Promise<string[]>
}

/** The answer to the first question for a session is 401 before sign-in; browsers log every failed request. */
const expected = /Failed to load resource: the server responded with a status of (4\d\d)/

export async function watchPage(page: Page): Promise<PageWatch> {
  const found: string[] = []
  page.on('pageerror', (error) => found.push(`error: ${error.message}`))
  page.on('dialog', (dialog) => {
    found.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected.test(message.text())) found.push(message.text())
  })
  return {
    async findings() {
      const isHacked = await page.evaluate(() => 'hacked' in globalThis)
      return isHacked ? [...found, 'a script of a sandbox ran'] : [...found]
    },
  }
}
