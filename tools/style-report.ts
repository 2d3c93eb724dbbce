/**
 * Runs oxlint with `style.oxlintrc.json`, which reports every comment, text, long file, long function and import cycle of
 * the repository. The rules of `prose.ts` and `structure.ts` count them.
 */
import { join } from 'node:path'
import { tryRun } from '@atoll/kit/run'
import type { Finding } from './debt.ts'
import { joinLineComments, plainText } from './prose.ts'
import type { Comment } from './prose.ts'

export interface StyleReport {
  readonly comments: readonly Comment[]
  /** Strings of several words: messages, help texts, test titles. */
  readonly texts: readonly Finding[]
  readonly longFiles: readonly Finding[]
  /** Functions over 60 lines. Tests are left out, because a `describe` block is a function too. */
  readonly longFunctions: ReadonlyArray<Finding & { readonly lines: number }>
  /** One finding for each import that is part of a cycle, type-only imports included. */
  readonly cycles: readonly Finding[]
}

interface Diagnostic {
  readonly code: string
  readonly message: string
  readonly filename: string
  readonly labels: ReadonlyArray<{
    readonly span: { readonly line: number; readonly column: number }
  }>
}

const roots = ['apps', 'packages', 'tests', 'bench', 'tools']

export async function readStyle(root: string): Promise<StyleReport> {
  const programs = join(root, 'node_modules/.bin')
  const diagnostics: Diagnostic[] = []
  // Folder by folder, since the output of a program has a limit. Apps import packages, and no folder imports back.
  for (const folder of roots) {
    const args = [
      ['--config', join(import.meta.dirname, 'style.oxlintrc.json')],
      ['--ignore-pattern', '**/gen/**'],
      ['--format', 'json', folder],
    ].flat()
    const { stdout, stderr } = await tryRun(join(programs, 'oxlint'), args, {
      cwd: root,
      env: { ...process.env, PATH: `${programs}:${process.env.PATH}` },
      timeoutMs: 300_000,
    })
    // For a folder without files, a message comes first.
    const report = stdout.slice(Math.max(stdout.indexOf('{'), 0))
    if (!report.startsWith('{')) throw new Error(`oxlint printed no report: ${stdout}${stderr}`)
    diagnostics.push(...JSON.parse(report).diagnostics)
  }
  return sortDiagnostics(diagnostics)
}

function sortDiagnostics(diagnostics: readonly Diagnostic[]): StyleReport {
  const byCode = Map.groupBy(diagnostics, ({ code }) => code)
  const findings = (code: string) => (byCode.get(code) ?? []).map(toFinding)
  return {
    comments: joinLineComments((byCode.get('prose(comments)') ?? []).map(toComment)),
    texts: findings('prose(texts)'),
    longFiles: findings('eslint(max-lines)'),
    longFunctions: findings('eslint(max-lines-per-function)').map((finding) => ({
      ...finding,
      lines: Number(/\((\d+)\)/.exec(finding.message)?.[1]),
    })),
    cycles: findings('import(no-cycle)'),
  }
}

function toFinding({ filename, message, labels }: Diagnostic): Finding {
  return { path: filename, line: labels[0]?.span.line ?? 1, message }
}

function toComment({ filename, message, labels }: Diagnostic): Comment {
  const { line, column } = labels[0]?.span ?? { line: 1, column: 1 }
  const type = message.startsWith('Line ') ? 'Line' : 'Block'
  const text = plainText(message.slice(message.indexOf(' ') + 1))
  return { path: filename, line, column, type, text }
}
