/** Generates `docs/api.md`, the reference of the platform API, from the contracts. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Operation } from '@atoll/contracts/operation'
import { operations } from '@atoll/contracts/operations'

const page = join(import.meta.dirname, '../docs/api.md')

const head = `# API reference

The operations of the platform API, made from the contracts (\`npm run generate\`). The server shows the same in full at
\`/docs\`, and as OpenAPI 3.1 at \`/openapi.json\`. Who may call:

| who | by |
| --- | --- |
| team | \`X-API-Key\`, or \`Authorization: Bearer\` with an access token (and \`X-Team-ID\` for another team of the user), or \`X-Admin-Token\` with \`X-Team-ID\` |
| user | \`Authorization: Bearer\` with an access token |
| admin | \`X-Admin-Token\`: internal, for operators; off unless \`ATOLL_ADMIN_TOKEN\` is set |
| everybody | |

Besides the failures below every operation answers 405 to other methods, 413 to a body above 16 MiB and 415 to a body
that is not JSON. [Errors](errors.md) lists the reasons behind the statuses, and what to do.

| operation | method and path | who | success | failures |
| --- | --- | --- | --- | --- |
`

function render(): string {
  return `${head}${operations.map(renderRow).join('\n')}\n`
}

function renderRow({ id, method, path, auth, replies, errors }: Operation): string {
  const who = auth === 'none' ? 'everybody' : auth
  const success = Object.keys(replies).join(' ')
  return `| \`${id}\` | \`${method} ${path}\` | ${who} | ${success} | ${errors.join(' ')} |`
}

export async function compareOperationsPage(): Promise<string | undefined> {
  const committed = await readFile(page, 'utf8').catch(() => '')
  return committed === render() ? undefined : 'docs/api.md is stale; run: npm run generate'
}

if (import.meta.main) await writeFile(page, render())
