import type { Locator, Page } from 'playwright-core'
import { waitFor } from '@atoll/kit/wait'

const limitMs = 300_000
const attemptMs = 20_000

/** A terminal as a person sees it, in the page or in a part of the page. */
export interface TerminalScreen {
  text(): Promise<string>
  /** Waits until the screen shows what the expression describes. */
  shows(expression: RegExp): Promise<void>
  /** Types a command, and Enter. */
  run(command: string): Promise<void>
  /**
   * Types a command until the screen shows its output. Input is lost while a terminal connects, and Chromium closes
   * WebSockets when a network interface of the host comes or goes.
   */
  answers(command: string, output: RegExp): Promise<void>
}

export function terminalScreen(page: Page, within: Page | Locator = page): TerminalScreen {
  const text = async () => {
    const rows = await within.locator('.xterm-rows > div').allInnerTexts()
    return rows.map((row) => row.replaceAll('\u00a0', ' ')).join('\n')
  }
  const run = async (command: string) => {
    await within.locator('.xterm-helper-textarea').focus()
    await page.keyboard.insertText(command)
    await page.keyboard.press('Enter')
  }
  const isShown = async (expression: RegExp, timeoutMs: number) => {
    const probe = async () => expression.test(await text())
    return waitFor('the output', probe, { timeoutMs, intervalMs: 100 }).catch(() => false)
  }
  return {
    text,
    run,
    async answers(command, output) {
      const attempt = async () => {
        await run(command)
        return isShown(output, attemptMs)
      }
      await waitFor(`the terminal to show ${output}`, attempt, { timeoutMs: limitMs })
    },
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
  }
}
