/** Generates `docs/errors.md`, the error catalogue, from the faults in the sources and the explanations in `errors/`. */
import { globSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { publishedReasons } from '@atoll/contracts/errors'
import { areasOf } from './errors/areas.ts'
import type { Area } from './errors/areas.ts'
import { apiRequestErrors } from './errors/api-requests.ts'
import { apiSandboxErrors } from './errors/api-sandboxes.ts'
import { apiTemplateErrors } from './errors/api-templates.ts'
import { backupErrors } from './errors/backup.ts'
import { cliErrors } from './errors/cli.ts'
import { dashboardErrors } from './errors/dashboard.ts'
import { edgeErrors, refusals } from './errors/edge.ts'
import { envdErrors } from './errors/envd.ts'
import type { EntryGroup } from './errors/entry.ts'
import { computedFaults } from './errors/computed-faults.ts'
import { findFaults } from './errors/find-faults.ts'
import type { FoundFault } from './errors/find-faults.ts'
import { kinds } from './errors/kinds.ts'
import { nodeErrors } from './errors/node.ts'
import { renderErrorsPage } from './errors/page.ts'
import { startErrors } from './errors/start.ts'

const root = join(import.meta.dirname, '..')
const page = join(root, 'docs/errors.md')

export const entryGroups: readonly EntryGroup[] = [
  apiSandboxErrors,
  apiTemplateErrors,
  apiRequestErrors,
  envdErrors,
  edgeErrors,
  dashboardErrors,
  cliErrors,
  backupErrors,
  startErrors,
  nodeErrors,
]

export interface Catalogue {
  readonly faults: readonly FoundFault[]
  readonly problems: readonly string[]
}

/** Compares the faults of the sources with the explanations. */
export function readCatalogue(
  sources: ReadonlyMap<string, string>,
  groups: readonly EntryGroup[],
): Catalogue {
  const scan = findFaults(sources, computedFaults, kinds)
  const problems = [...scan.problems]
  const used = new Set<string>()
  const explained = new Set<string>()
  for (const { area, entries } of groups) {
    for (const reason of Object.keys(entries)) {
      const key = keyOf(area, reason)
      if (explained.has(key)) problems.push(`tools/errors explains ${key} twice`)
      explained.add(key)
    }
  }
  for (const { reason, path } of scan.faults) {
    const areas = areasOf(path)
    if (!areas) problems.push(`${path}: tools/errors/areas.ts names no area for this path`)
    for (const area of areas ?? []) used.add(keyOf(area, reason))
  }
  // The edge refuses requests without faults.
  for (const kind of Object.keys(refusals)) used.add(keyOf('edge', kind))
  // The API answers unexpected errors without a fault.
  used.add(keyOf('api', 'internal_server_error'))
  for (const reason of publishedReasons) {
    if (!used.has(keyOf('api', reason)))
      problems.push(`no fault has the published reason ${reason}`)
  }
  for (const key of used.difference(explained)) {
    problems.push(`tools/errors does not explain ${key}`)
  }
  for (const key of explained.difference(used)) {
    problems.push(`tools/errors explains ${key}, which no fault has`)
  }
  return { faults: scan.faults, problems }
}

function keyOf(area: Area, reason: string): string {
  return `${area}: ${reason}`
}

/** Returns the sources by path, without tests and simulators. */
export function readFaultSources(): Map<string, string> {
  const patterns = ['apps/*/src/**/*.{ts,tsx,mjs}', 'packages/*/src/**/*.ts']
  const paths = globSync(patterns, { cwd: root, exclude: ['**/node_modules/**'] })
    .filter((path) => !/\.(test|contract)\.ts$|\/(sim|testing|component-tests)\//.test(path))
    .toSorted()
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}

export async function compareErrorsPage(): Promise<string | undefined> {
  const { faults, problems } = readCatalogue(readFaultSources(), entryGroups)
  if (problems.length > 0) return problems.join('\n')
  const committed = await readFile(page, 'utf8').catch(() => '')
  return committed === renderErrorsPage(faults, entryGroups)
    ? undefined
    : 'docs/errors.md is stale; run: npm run generate'
}

if (import.meta.main) {
  const { faults, problems } = readCatalogue(readFaultSources(), entryGroups)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  await writeFile(page, renderErrorsPage(faults, entryGroups))
}
