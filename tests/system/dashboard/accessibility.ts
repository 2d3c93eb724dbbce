import { fileURLToPath } from 'node:url'
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'

const source = await readFile(fileURLToPath(import.meta.resolve('axe-core')), 'utf8')

interface AxeReport {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string }[]
  }[]
}

/** Returns the rules of axe-core that the page violates, with the first element of each. */
export async function findBarriers(page: Page): Promise<string[]> {
  // The browser protocol runs axe-core: the policy of the page would refuse a script element.
  const report: string = await page.evaluate(`${source}; axe.run(document).then(JSON.stringify)`)
  const { violations }: AxeReport = JSON.parse(report)
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}
