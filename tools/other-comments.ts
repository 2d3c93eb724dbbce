/** Finds comments in the files that oxlint cannot read: C, Python and `.proto` files. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { joinLineComments, plainText } from './prose.ts'
import type { Comment } from './prose.ts'

export function readOtherComments(root: string): Comment[] {
  const paths = globSync('{apps,packages,tests,bench,tools}/**/*.{c,h,py,proto}', {
    cwd: root,
    exclude: (name) => /(^|\/)(node_modules|gen)$/.test(name),
  })
  return paths.flatMap((path) => findComments(path, readFileSync(join(root, path), 'utf8')))
}

/** Skips string literals, which may contain the start of a comment. */
const cTokens = /"(?:\\.|[^"\\\n])*"|\/\*(?<block>[^]*?)\*\/|\/\/(?<line>.*)/g
const pythonTokens =
  /(?<=^[ \t]*)"""(?<block>[^]*?)"""|"""[^]*?"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#(?!!)(?<line>.*)/gm

export function findComments(path: string, source: string): Comment[] {
  const tokens = source.matchAll(path.endsWith('.py') ? pythonTokens : cTokens)
  const comments = [...tokens].flatMap(({ index, groups }): Comment[] => {
    const text = groups?.['block'] ?? groups?.['line']
    if (text === undefined) return []
    const lines = source.slice(0, index).split('\n')
    const type = groups?.['line'] === undefined ? 'Block' : 'Line'
    const place = { path, line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
    return [{ ...place, type, text: plainText(text) }]
  })
  return joinLineComments(comments)
}
