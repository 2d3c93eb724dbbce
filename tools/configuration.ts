/** Generates `docs/configuration.md` from the schemas that parse the environment. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiEnv } from '@atoll/api/config'
import { EdgeEnv } from '@atoll/edge/config'
import { NodeEnv } from '@atoll/node/config'
import { ServerEnv } from '@atoll/server/config'
import { FleetEnv } from '@atoll/server/fleet/config'

const page = join(import.meta.dirname, '../docs/configuration.md')

const head = `# Configuration

Environment variables configure Atoll. \`npm run generate\` makes this page from their schemas. The server refuses to start
with an invalid value, and lists all invalid values at once.

| variable | default | meaning |
| --- | --- | --- |
`

export function renderConfigurationPage(): string {
  const settings = new Map<string, string>()
  for (const { shape } of [ServerEnv, ApiEnv, NodeEnv, EdgeEnv, FleetEnv]) {
    for (const [name, schema] of Object.entries(shape)) {
      if (settings.has(name)) continue
      // `io: 'input'` gives the default as an operator writes it, before parsing.
      const { default: written } = schema.toJSONSchema({ io: 'input', unrepresentable: 'any' })
      const shown = written === undefined ? '' : `\`${String(written)}\``
      settings.set(name, `| \`${name}\` | ${shown} | ${schema.description ?? ''} |`)
    }
  }
  return `${head}${[...settings.values()].toSorted().join('\n')}\n`
}

export async function compareConfigurationPage(): Promise<string | undefined> {
  const committed = await readFile(page, 'utf8').catch(() => '')
  return committed === renderConfigurationPage()
    ? undefined
    : 'docs/configuration.md is stale; run: npm run generate'
}

if (import.meta.main) await writeFile(page, renderConfigurationPage())
