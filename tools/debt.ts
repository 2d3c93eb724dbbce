/**
 * Ratchet for rules that older code still breaks: a JSON file holds the number of findings that each folder may have.
 * More findings fail the check; fewer ask for a lower number, so that the count only falls.
 */
import { readFile, writeFile } from 'node:fs/promises'

export interface Finding {
  readonly path: string
  readonly line: number
  readonly message: string
}

export interface Rule {
  /** Key of the rule in the debt file. */
  readonly name: string
  readonly findings: readonly Finding[]
  readonly groupOf: (path: string) => string
  /** Findings that a group may have without an entry in the debt file. */
  readonly toleratedIn: (group: string) => number
}

/** Allowed findings by rule and group. */
export type Debt = Readonly<Record<string, Readonly<Record<string, number>>>>

export interface Comparison {
  readonly failures: readonly string[]
  readonly notes: readonly string[]
}

const shownFindings = 10

export function compareWithDebt(rules: readonly Rule[], debt: Debt): Comparison {
  const failures: string[] = []
  const notes: string[] = []
  for (const rule of rules) {
    const allowances = debt[rule.name] ?? {}
    const groups = groupFindings(rule)
    for (const group of new Set([...groups.keys(), ...Object.keys(allowances)])) {
      const findings = groups.get(group) ?? []
      const allowed = Math.max(allowances[group] ?? 0, rule.toleratedIn(group))
      if (findings.length > allowed) failures.push(describe(rule.name, group, findings, allowed))
      else if (requiredDebt(rule, group, findings.length) < (allowances[group] ?? 0))
        notes.push(`${group}: ${findings.length} × ${rule.name}, ${allowances[group]} allowed`)
    }
  }
  return { failures, notes }
}

function describe(
  name: string,
  group: string,
  findings: readonly Finding[],
  allowed: number,
): string {
  const lines = findings
    .slice(0, shownFindings)
    .map(({ path, line, message }) => `  ${path}:${line}  ${message}`)
  const rest = findings.length - lines.length
  if (rest > 0) lines.push(`  … and ${rest} more`)
  return `${group}: ${findings.length} × ${name}, ${allowed} allowed:\n${lines.join('\n')}`
}

/** Returns the debt that covers the findings exactly; numbers rise only with `mayRise`. */
export function updateDebt(rules: readonly Rule[], debt: Debt, mayRise: boolean): Debt {
  const entries = rules.map((rule) => {
    const groups = [...groupFindings(rule)].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const numbers = groups.flatMap(([group, findings]) => {
      const required = requiredDebt(rule, group, findings.length)
      const kept = mayRise ? required : Math.min(required, debt[rule.name]?.[group] ?? 0)
      return kept > 0 ? [[group, kept] as const] : []
    })
    return [rule.name, Object.fromEntries(numbers)] as const
  })
  return Object.fromEntries(entries)
}

function requiredDebt(rule: Rule, group: string, count: number): number {
  return count > rule.toleratedIn(group) ? count : 0
}

function groupFindings({ findings, groupOf }: Rule): Map<string, Finding[]> {
  return Map.groupBy(findings, ({ path }) => groupOf(path))
}

/** Returns the app, package or other top folder of a file: `apps/api`, `tests/system`, `tools`. */
export function topFolder(path: string): string {
  const [first = '', second = ''] = path.split('/')
  return ['apps', 'packages', 'tests'].includes(first) ? `${first}/${second}` : first
}

export async function readDebt(file: string): Promise<Debt> {
  return JSON.parse(await readFile(file, 'utf8'))
}

export async function writeDebt(file: string, debt: Debt): Promise<void> {
  await writeFile(file, `${JSON.stringify(debt, undefined, 2)}\n`)
}
