import { readJsonWords } from './commands.ts'
import { invalidDockerfile } from './instructions.ts'
import type { Instruction } from './instructions.ts'
import type { Stage } from './stage.ts'
import { toFinalText } from './words.ts'

/** Reads COPY, and ADD where it means the same. */
export function applyCopy(instruction: Instruction, stage: Stage): void {
  const { keyword, rest, line } = instruction
  if (!stage.hasFiles) throw withoutFiles(instruction)
  const expand = (word: string) =>
    toFinalText(stage.words.expand(word, { line, variables: stage.variables }), line)
  const { options, words } = splitOptions(instruction, stage)
  const owner = expand(options.get('chown') ?? '')
  const mode = expand(options.get('chmod') ?? '')
  if (!/^[0-7]{0,4}$/.test(mode)) {
    throw invalidDockerfile(`--chmod=${mode.slice(0, 40)} is not a mode such as 0755`, line)
  }
  const sources = words.map(expand)
  const target = sources.pop() ?? ''
  if (sources.length === 0 || target === '' || sources.includes('')) {
    throw invalidDockerfile(`write ${keyword} as "${keyword} source… target"`, line)
  }
  if (sources.length > 1 && !target.endsWith('/')) {
    throw invalidDockerfile(`${keyword} of several sources needs a target that ends with /`, line)
  }
  for (const source of sources) checkSource(source, instruction)
  const copy = { sources, target, owner, mode, line }
  stage.steps.push({ type: 'COPY', args: [], copy, title: `${keyword} ${rest}` })
}

interface Copy {
  readonly options: ReadonlyMap<string, string>
  readonly words: readonly string[]
}

function splitOptions({ keyword, rest, line }: Instruction, { words }: Stage): Copy {
  const options = new Map<string, string>()
  const split = words.split(rest)
  const count = split.findIndex((word) => !word.startsWith('--'))
  let paths = rest
  for (const word of count === -1 ? split : split.slice(0, count)) {
    const [, name = '', value = ''] = /^--([^=]*)=?([^]*)$/.exec(word) ?? []
    if (name === 'from') {
      throw invalidDockerfile(`--from of ${keyword} is not supported: builds have one stage`, line)
    }
    if (!['chown', 'chmod', 'link'].includes(name)) {
      throw invalidDockerfile(`--${name.slice(0, 40)} of ${keyword} is not supported`, line)
    }
    options.set(name, value)
    paths = paths.slice(word.length).trimStart()
  }
  return { options, words: readJsonWords(paths) ?? words.split(paths) }
}

function checkSource(source: string, { keyword, line }: Instruction): void {
  if (source.startsWith('<<')) {
    throw invalidDockerfile('here-documents (<<) are not supported: put the text into a file', line)
  }
  if (keyword !== 'ADD') return
  if (/^[a-z][a-z0-9+.-]*:\/\/|^git@/i.test(source)) {
    throw invalidDockerfile('ADD of a URL is not supported: use RUN with curl or git', line)
  }
  if (/\.(tar|tgz|tbz2?|txz|tar\.\w+)$/i.test(source)) {
    throw invalidDockerfile('ADD does not unpack archives: use COPY, and RUN tar', line)
  }
}

function withoutFiles({ keyword, line }: Instruction) {
  return invalidDockerfile(
    `${keyword} is not supported, since no files come with a Dockerfile: use \`atoll template build\` or the template builder of the SDK (Template.build)`,
    line,
  )
}
