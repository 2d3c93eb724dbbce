import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface SourceFile {
  /** Relative to the root of the repository. */
  readonly path: string
  readonly imports: readonly Import[]
  /** Lines that read `process.env`. */
  readonly environmentReads: readonly number[]
}

export interface Import {
  readonly specifier: string
  /** `import type` or `export type`, which Node.js erases. */
  readonly isTypeOnly: boolean
  readonly line: number
}

const patterns = ['apps/*/src/**/*.{ts,tsx,mjs}', 'packages/*/src/**/*.ts']

export function readSourceFiles(root: string): SourceFile[] {
  return globSync(patterns, { cwd: root, exclude: ['**/node_modules/**'] })
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((path) => parseSource(path, readFileSync(join(root, path), 'utf8')))
}

const importPattern =
  /^[ \t]*(?:import|export)\s(?:[^'";]*?\sfrom\s*)?['"]([^'"]+)['"]|\b(?:import|require)\(\s*['"]([^'"]+)['"]/gm
const environmentPattern =
  /\bprocess\.env\b|\bprocess\[['"]env['"]\]|\{[^}]*\benv\b[^}]*\} from 'node:process'/g

export function parseSource(path: string, text: string): SourceFile {
  const code = withoutComments(text)
  return {
    path,
    imports: [...code.matchAll(importPattern)].map((match) => ({
      specifier: match[1] ?? match[2] ?? '',
      isTypeOnly: /^\s*(import|export)\s+type\s/.test(match[0]),
      line: lineAt(code, match.index),
    })),
    environmentReads: [...code.matchAll(environmentPattern)].map((m) => lineAt(code, m.index)),
  }
}

/** Blanks out comments and keeps line breaks, so that line numbers stay correct. */
export function withoutComments(text: string): string {
  return text
    .replace(/^[ \t]*\/\*[^]*?\*\//gm, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/(^|\s)\/\/.*$/gm, '$1')
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}
