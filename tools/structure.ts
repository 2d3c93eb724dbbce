/** Rules about the size and the shape of the code: long files, long functions, crowded folders, import cycles. */
import { globSync } from 'node:fs'
import { dirname } from 'node:path/posix'
import { topFolder } from './debt.ts'
import type { Finding, Rule } from './debt.ts'
import type { StyleReport } from './style-report.ts'

const crowdedFolderFiles = 25
const longFunctionLines = 120
/** Functions over 60 lines that the whole repository may have. */
const toleratedLongFunctions = 40

export function structureRules(
  { longFiles, longFunctions, cycles }: StyleReport,
  paths: readonly string[],
): Rule[] {
  const strict = { groupOf: topFolder, toleratedIn: () => 0 }
  return [
    { name: 'file over 400 lines', findings: longFiles, ...strict },
    {
      name: `function over ${longFunctionLines} lines`,
      findings: longFunctions.filter(({ lines }) => lines > longFunctionLines),
      ...strict,
    },
    {
      name: 'function over 60 lines',
      findings: longFunctions,
      groupOf: () => 'repository',
      toleratedIn: () => toleratedLongFunctions,
    },
    {
      name: `folder over ${crowdedFolderFiles} source files`,
      findings: findCrowdedFolders(paths),
      ...strict,
    },
    { name: 'import cycle', findings: cycles, ...strict },
  ]
}

function findCrowdedFolders(paths: readonly string[]): Finding[] {
  const sources = paths.filter((path) => !/\.(test|contract)\.ts$/.test(path))
  return [...Map.groupBy(sources, (path) => dirname(path))]
    .filter(([, files]) => files.length > crowdedFolderFiles)
    .map(([path, files]) => ({ path, line: 1, message: `${files.length} source files` }))
}

export function listSources(root: string): string[] {
  return globSync('{apps,packages,tests,bench,tools}/**/*.{ts,tsx,mjs}', {
    cwd: root,
    exclude: (name) => /(^|\/)(node_modules|gen)$/.test(name),
  })
}
