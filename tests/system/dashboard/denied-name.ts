import type { Sandbox } from 'e2b'
import type { Page } from 'playwright-core'
import { takeScreenshots } from './screenshots.ts'

/** Asks for a name that the rules do not allow, finds the refusal in the Network page, and allows the name there. */
export async function allowDeniedName(page: Page, sandbox: Sandbox): Promise<void> {
  await sandbox.commands.run('getent hosts wanted.example || true')
  const allow = page.getByRole('button', { name: 'Allow wanted.example' }).first()
  await allow.waitFor()
  await takeScreenshots(page, 'network')
  await allow.click()
  await page.getByText('wanted.example is allowed').waitFor()
}
