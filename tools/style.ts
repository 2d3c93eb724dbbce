/**
 * The style check of `npm run check`.
 *
 *   node tools/style.ts apps/cli   lists all findings below a path
 *   node tools/style.ts --record   lowers the numbers of the debt files to what is left; with `--raise` raises them too
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { compareWithDebt, readDebt, updateDebt, writeDebt } from './debt.ts'
import type { Rule } from './debt.ts'
import { readOtherComments } from './other-comments.ts'
import { readPages } from './pages.ts'
import { proseRules } from './prose.ts'
import { listSources, structureRules } from './structure.ts'
import { readStyle } from './style-report.ts'

const root = join(import.meta.dirname, '..')

interface RuleSet {
  readonly debtFile: string
  readonly rules: readonly Rule[]
}

export interface StyleOutcome {
  readonly failure: string | undefined
  readonly note: string | undefined
}

export async function checkStyle(): Promise<StyleOutcome> {
  const failures: string[] = []
  const notes: string[] = []
  for (const { debtFile, rules } of await readRuleSets()) {
    const comparison = compareWithDebt(rules, await readDebt(join(root, debtFile)))
    failures.push(...comparison.failures)
    notes.push(...comparison.notes.map((note) => `${note} in ${debtFile}`))
  }
  if (failures.length > 0)
    failures.push('Newest files come first. All findings: node tools/style.ts [path]')
  if (notes.length > 0) notes.push('Fewer findings than allowed. Lower the numbers: npm run debt')
  return { failure: joinLines(failures), note: joinLines(notes) }
}

function joinLines(lines: readonly string[]): string | undefined {
  return lines.length > 0 ? lines.join('\n') : undefined
}

async function readRuleSets(): Promise<RuleSet[]> {
  const report = await readStyle(root)
  const comments = [...report.comments, ...readOtherComments(root)]
  const texts = [...report.texts, ...readPages(root)]
  return [
    { debtFile: 'tools/prose-debt.json', rules: proseRules(comments, texts) },
    { debtFile: 'tools/structure-debt.json', rules: structureRules(report, listSources(root)) },
  ].map(({ debtFile, rules }) => ({ debtFile, rules: rules.map(newestFilesFirst) }))
}

/** Puts the findings of a change just made before older ones. */
function newestFilesFirst(rule: Rule): Rule {
  const modified = (path: string) => statSync(join(root, path)).mtimeMs
  const times = new Map(rule.findings.map(({ path }) => [path, modified(path)]))
  const timeOf = (path: string) => times.get(path) ?? 0
  return { ...rule, findings: rule.findings.toSorted((a, b) => timeOf(b.path) - timeOf(a.path)) }
}

async function list(prefix: string): Promise<void> {
  for (const rule of (await readRuleSets()).flatMap(({ rules }) => rules)) {
    const findings = rule.findings.filter(({ path }) => path.startsWith(prefix))
    process.stdout.write(`${findings.length} × ${rule.name}\n`)
    for (const { path, line, message } of findings)
      process.stdout.write(`  ${path}:${line}  ${message}\n`)
  }
}

async function record(mayRise: boolean): Promise<void> {
  for (const { debtFile, rules } of await readRuleSets()) {
    const file = join(root, debtFile)
    await writeDebt(file, updateDebt(rules, await readDebt(file), mayRise))
  }
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  if (args.includes('--record')) await record(args.includes('--raise'))
  else await list(args[0] ?? '')
}
