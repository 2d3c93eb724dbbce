import assert from 'node:assert/strict'
import type { Sandbox } from 'e2b'
import type { Page } from 'playwright-core'
import { takeScreenshots } from './screenshots.ts'

/** Changes a file of the template, and reads the difference in the Files page. */
export async function compareChangedFile(page: Page, sandbox: Sandbox): Promise<void> {
  await sandbox.commands.run('echo changed >>/etc/issue', { user: 'root' })
  await page.getByRole('link', { name: 'Changes' }).click()
  await page.getByTitle('modified: /etc/issue').click()
  const differences = page.getByLabel('Differences')
  await differences.waitFor()
  assert.match(await differences.innerText(), /^\+changed$/m)
  await takeScreenshots(page, 'changes')
}
