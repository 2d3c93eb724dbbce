import { join } from 'node:path'
import type { Page } from 'playwright-core'

/** Folder for screenshots, for example for CI. Unset: none are taken. */
const folder = process.env['ATOLL_TEST_SCREENSHOTS']

const wide = { width: 1280, height: 800 }
const narrow = { width: 390, height: 780 }

/** Plots are drawn again, with other colours or another size, in the frames after a change. */
export const fewFrames = `new Promise((resolve) => {
  let frames = 0
  const next = () => ((frames += 1) > 5 ? resolve() : requestAnimationFrame(next))
  next()
})`

/** Takes screenshots of the page in light and dark, and at the width of a phone. */
export async function takeScreenshots(page: Page, name: string): Promise<void> {
  if (!folder) return
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.evaluate(fewFrames)
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) })
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(narrow)
  await page.evaluate(fewFrames)
  await page.screenshot({ path: join(folder, `${name}-narrow.png`) })
  await page.setViewportSize(wide)
}
