/** Reads the Markdown pages of the repository, for the rules of `prose.ts`. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from './debt.ts'

export function readPages(root: string): Finding[] {
  const paths = globSync('{*.md,{docs,deploy,apps,packages,tests,bench,tools}/**/*.md}', {
    cwd: root,
    exclude: (name) => /(^|\/)node_modules$/.test(name),
  })
  return paths.flatMap((path) => splitPage(path, readFileSync(join(root, path), 'utf8')))
}

/** Returns each heading, paragraph, list item and table row as one text. Leaves out code blocks. */
export function splitPage(path: string, page: string): Finding[] {
  const blocks: Finding[] = []
  let isCode = false
  let isOpen = false
  for (const [index, line] of page.split('\n').entries()) {
    const isFence = line.trimStart().startsWith('```')
    if (isFence) isCode = !isCode
    if (isFence || isCode || line.trim() === '') {
      isOpen = false
      continue
    }
    const block = blocks.at(-1)
    if (block && isOpen && !/^\s*([|#>*-]|\d+\.)/.test(line)) {
      blocks[blocks.length - 1] = { ...block, message: `${block.message} ${line.trim()}` }
    } else blocks.push({ path, line: index + 1, message: line.trim() })
    isOpen = !line.startsWith('#')
  }
  return blocks
}
