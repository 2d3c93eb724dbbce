import { dockerfileError } from './instructions.ts'
import type { Instruction } from './instructions.ts'
import { expand, readWords } from './stage.ts'
import type { Stage } from './stage.ts'
import { splitWords } from './words.ts'

/** Reads COPY, and ADD where it means the same. */
export function readCopy(instruction: Instruction, stage: Stage): void {
  const { keyword, rest, line } = instruction
  const { flags, paths } = splitFlags(rest, stage.escape)
  const expanded = (word: string) => expand(word, { line, stage })
  const settings = { owner: '', mode: '' }
  for (const [name, value] of flags) {
    if (name === 'chown') settings.owner = expanded(value)
    else if (name === 'chmod') settings.mode = expanded(value)
    else if (name === 'from') throw dockerfileError(line, fromRefused(keyword))
    else if (name !== 'link')
      throw dockerfileError(line, `--${name} of ${keyword} is not supported`)
  }
  if (!/^[0-7]{0,4}$/.test(settings.mode)) {
    throw dockerfileError(line, `--chmod=${settings.mode} is not a mode such as 0755`)
  }
  const words = paths.map(expanded)
  const target = words.pop() ?? ''
  if (words.length === 0 || target === '' || words.includes('')) {
    throw dockerfileError(line, `write "${keyword} source… target"`)
  }
  if (words.length > 1 && !target.endsWith('/')) {
    throw dockerfileError(line, `${keyword} of several sources needs a target that ends with /`)
  }
  for (const source of words) checkSource(source, instruction)
  const copy = { sources: words, target, ...settings, line }
  stage.steps.push({ type: 'COPY', args: [], copy, title: `${keyword} ${rest}` })
}

interface Flagged {
  readonly flags: readonly (readonly [name: string, value: string])[]
  readonly paths: readonly string[]
}

function splitFlags(rest: string, escape: string): Flagged {
  const words = splitWords(rest, escape)
  const end = words.findIndex((word) => !word.startsWith('--'))
  const flagWords = end === -1 ? words : words.slice(0, end)
  const flags = flagWords.map((word) => {
    const [, name = '', value = ''] = /^--([^=]*)=?([^]*)$/.exec(word) ?? []
    return [name, value] as const
  })
  const afterFlags = rest.replace(/^(?:--\S*\s+)*/, '')
  return { flags, paths: readWords(afterFlags) ?? (end === -1 ? [] : words.slice(end)) }
}

function checkSource(source: string, { keyword, line }: Instruction): void {
  if (source.startsWith('<<')) {
    throw dockerfileError(line, 'here-documents (<<) are not supported: put the text into a file')
  }
  if (keyword !== 'ADD') return
  if (/^[a-z][a-z0-9+.-]*:\/\/|^git@/i.test(source)) {
    throw dockerfileError(line, 'ADD of a URL is not supported: use RUN with curl or git')
  }
  if (/\.(tar|tgz|tbz2?|txz)$|\.tar\.\w+$/i.test(source)) {
    throw dockerfileError(line, 'ADD does not unpack archives: use COPY, and RUN tar')
  }
}

function fromRefused(keyword: string): string {
  return `--from of ${keyword} is not supported: builds have one stage`
}
