import type { Locator, Page } from 'playwright-core'
import { waitFor } from '@atoll/kit/wait'

const limitMs = 300_000

/** A terminal as a person sees it, in the page or in a part of the page. */
export interface TerminalScreen {
  text(): Promise<string>
  /** Waits until the screen shows what the expression describes. */
  shows(expression: RegExp): Promise<void>
  /** Types a command, and Enter. */
  run(command: string): Promise<void>
}

export function terminalScreen(page: Page, within: Page | Locator = page): TerminalScreen {
  const text = async () => {
    const rows = await within.locator('.xterm-rows > div').allInnerTexts()
    return rows.map((row) => row.replaceAll('\u00a0', ' ')).join('\n')
  }
  return {
    text,
    async shows(expression) {
      let seen = ''
      await waitFor(
        `the terminal to show ${expression}`,
        async () => {
          seen = await text()
          return expression.test(seen)
        },
        { timeoutMs: limitMs, intervalMs: 100 },
      ).catch((error: unknown) => {
        throw new Error(`The terminal shows:\n${seen}`, { cause: error })
      })
    },
    async run(command) {
      await within.locator('.xterm-helper-textarea').focus()
      await page.keyboard.insertText(command)
      await page.keyboard.press('Enter')
    },
  }
}
