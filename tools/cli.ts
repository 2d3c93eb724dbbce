/** Generates `docs/cli.md` from the declarations of the commands. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { renderCliPage } from '@atoll/cli/page'

const page = join(import.meta.dirname, '../docs/cli.md')

export async function compareCliPage(): Promise<string | undefined> {
  const committed = await readFile(page, 'utf8').catch(() => '')
  return committed === (await renderCliPage())
    ? undefined
    : 'docs/cli.md is stale; run: npm run generate'
}

if (import.meta.main) await writeFile(page, await renderCliPage())
