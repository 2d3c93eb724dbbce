/**
 * Turns a Dockerfile into the source and the steps of a build, by the rules of Docker. Instructions that a build
 * cannot carry out are refused, never skipped silently.
 */
import { dockerfileError, splitDockerfile } from './instructions.ts'
import type { Instruction } from './instructions.ts'
import { readCopy } from './copy.ts'
import { escapeDollars, expand, expandForServer, knownValue, readWords } from './stage.ts'
import type { RecipeStep, Stage } from './stage.ts'
import { splitWords } from './words.ts'
import { UsageError } from '../../failure.ts'

export interface DockerfileRecipe {
  readonly fromImage: string
  readonly steps: readonly RecipeStep[]
  readonly startCommand: string | undefined
}

export function readDockerfile(
  text: string,
  buildArgs: Readonly<Record<string, string>> = {},
): DockerfileRecipe {
  const { escape, instructions } = splitDockerfile(text)
  const stage: Stage = {
    ...{ escape, buildArgs, globals: new Map(), variables: new Map() },
    ...{ setByEnv: new Set(), usedArgs: new Set(), steps: [] },
  }
  for (const instruction of instructions) apply(instruction, stage)
  if (stage.image === undefined) throw new UsageError('The Dockerfile has no FROM.')
  const unused = Object.keys(buildArgs).filter((name) => !stage.usedArgs.has(name))
  if (unused.length > 0) {
    throw new UsageError(`The Dockerfile has no ARG ${unused.join(', ')} for --build-arg.`)
  }
  return {
    fromImage: stage.image,
    steps: stage.steps,
    startCommand: startOf(stage),
  }
}

type Handler = (instruction: Instruction, stage: Stage) => void

const ignored: Handler = () => {}
const refused: Handler = ({ keyword, line }) => {
  throw dockerfileError(line, `${keyword} is not supported`)
}

const handlers: ReadonlyMap<string, Handler> = new Map([
  ['FROM', applyFrom],
  ['ARG', applyArg],
  ['ENV', applyEnv],
  ['RUN', applyRun],
  ['COPY', readCopy],
  ['ADD', readCopy],
  ['WORKDIR', applyPlace],
  ['USER', applyPlace],
  ['CMD', applyCommand],
  ['ENTRYPOINT', applyCommand],
  ['SHELL', refused],
  ['ONBUILD', refused],
  // No effect on builds or sandboxes.
  ['EXPOSE', ignored],
  ['VOLUME', ignored],
  ['LABEL', ignored],
  ['MAINTAINER', ignored],
  ['STOPSIGNAL', ignored],
  ['HEALTHCHECK', ignored],
])

function apply(instruction: Instruction, stage: Stage): void {
  const { keyword, rest, line } = instruction
  const handler = handlers.get(keyword)
  if (!handler) throw dockerfileError(line, `there is no instruction ${keyword.slice(0, 40)}`)
  if (stage.image === undefined && keyword !== 'FROM' && keyword !== 'ARG') {
    throw dockerfileError(line, `${keyword} comes before FROM`)
  }
  if (rest === '') throw dockerfileError(line, `${keyword} needs arguments`)
  handler(instruction, stage)
}

function applyFrom({ rest, line }: Instruction, stage: Stage): void {
  if (stage.image !== undefined) {
    throw dockerfileError(line, 'a second FROM: builds have one stage, so merge the stages')
  }
  const [, image = ''] = /^(?:--platform=\S+\s+)?(\S+)(?:\s+AS\s+\S+)?$/i.exec(rest) ?? []
  if (image === '' || image.startsWith('--')) {
    throw dockerfileError(line, 'write "FROM image" or "FROM image AS name"')
  }
  const lookup = (name: string) => stage.globals.get(name)
  stage.image = expand(image, { line, stage, lookup })
  if (stage.image === '') throw dockerfileError(line, 'the image of FROM is empty')
}

function applyArg({ rest, line }: Instruction, stage: Stage): void {
  const isGlobal = stage.image === undefined
  for (const word of splitWords(rest, stage.escape)) {
    const [name, written] = toPair(word, line)
    const lookup = isGlobal ? (other: string) => stage.globals.get(other) : undefined
    const byDefault =
      written === undefined ? stage.globals.get(name) : expand(written, { line, stage, lookup })
    stage.usedArgs.add(name)
    const given = Object.hasOwn(stage.buildArgs, name) ? stage.buildArgs[name] : undefined
    const value = given ?? byDefault
    if (isGlobal) stage.globals.set(name, value ?? '')
    else if (!stage.setByEnv.has(name)) declare(name, value, stage)
  }
}

/** An ARG without a value is the empty text, but not a variable of commands. */
function declare(name: string, value: string | undefined, stage: Stage): void {
  stage.variables.set(name, value ?? '')
  if (value === undefined) return
  stage.steps.push({ type: 'ENV', args: [name, escapeDollars(value)], title: `ARG ${name}` })
}

function applyEnv({ rest, line }: Instruction, stage: Stage): void {
  const words = splitWords(rest, stage.escape)
  const isPairs = words[0]?.includes('=') ?? false
  const [name = '', ...more] = words
  if (!isPairs && more.length === 0) throw dockerfileError(line, 'write "ENV name=value"')
  const pairs = isPairs ? words : [`${name}=${rest.slice(name.length).trim()}`]
  const values = pairs.map((pair): [string, string, string | undefined] => {
    const [key, written] = toPair(pair, line)
    if (written === undefined) throw dockerfileError(line, 'write "ENV name=value"')
    return [key, expandForServer(written, { line, stage }), knownValue(written, { line, stage })]
  })
  for (const [key, , known] of values) {
    stage.variables.set(key, known)
    stage.setByEnv.add(key)
  }
  const args = values.flatMap(([key, text]) => [key, text])
  stage.steps.push({ type: 'ENV', args, title: `ENV ${rest}` })
}

function toPair(word: string, line: number): [name: string, value: string | undefined] {
  const equals = word.indexOf('=')
  const name = equals === -1 ? word : word.slice(0, equals)
  if (!/^[A-Za-z_][\w.-]*$/.test(name)) {
    throw dockerfileError(line, `${name || word} is not the name of a variable`)
  }
  return [name, equals === -1 ? undefined : word.slice(equals + 1)]
}

function applyRun(instruction: Instruction, { steps }: Stage): void {
  const { rest, line } = instruction
  if (rest.startsWith('--')) {
    throw dockerfileError(line, 'options of RUN, such as --mount, are not supported')
  }
  if (/(^|\s)\d*<<-?["']?[A-Za-z_]/.test(rest)) {
    throw dockerfileError(line, 'here-documents (<<) are not supported: use "&&", or COPY a script')
  }
  steps.push({ type: 'RUN', args: [toShell(readCommand(instruction))], title: `RUN ${rest}` })
}

function applyPlace({ keyword, rest, line }: Instruction, stage: Stage): void {
  const type = keyword === 'USER' ? 'USER' : 'WORKDIR'
  const value = expandForServer(rest, { line, stage })
  stage.steps.push({ type, args: [value], title: `${type} ${rest}` })
}

function applyCommand(instruction: Instruction, stage: Stage): void {
  if (instruction.keyword === 'CMD') stage.command = readCommand(instruction)
  else stage.entrypoint = readCommand(instruction)
}

function readCommand({ rest }: Instruction): string | readonly string[] {
  return readWords(rest) ?? rest
}

function startOf({ entrypoint = [], command = [] }: Stage): string | undefined {
  if (typeof entrypoint === 'string') return entrypoint
  if (entrypoint.length === 0) return command.length === 0 ? undefined : toShell(command)
  const args = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
  return toShell([...entrypoint, ...args])
}

function toShell(command: string | readonly string[]): string {
  return typeof command === 'string' ? command : command.map(quote).join(' ')
}

function quote(word: string): string {
  return /^[\w@%+:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
