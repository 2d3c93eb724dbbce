/** ARG and ENV. Their values reach the commands of the build as ENV steps. */
import { invalidDockerfile, isText } from './instructions.ts'
import type { Instruction } from './instructions.ts'
import type { Stage } from './stage.ts'
import { hasReference, literally, toStepText } from './words.ts'

/** An ARG takes the value of the build argument, its default, or the value of the ARG before FROM, in this order. */
export function applyArg(instruction: Instruction, stage: Stage): void {
  const isGlobal = stage.image === undefined
  const variables = isGlobal ? stage.globals : stage.variables
  const values = new Map<string, string>()
  for (const word of stage.words.split(instruction.rest)) {
    const [name, byDefault] = readPair(word, instruction, { ...stage, variables })
    stage.declaredArgs.add(name)
    const value = buildArg(name, instruction, stage) ?? byDefault ?? stage.globals.get(name)
    if (value === undefined) {
      // A declared ARG does not come from the image: references expand to the empty string.
      if (!variables.has(name)) variables.set(name, '')
    } else if (!stage.fixed.has(name) && variables.get(name) !== value) {
      values.set(name, value)
    }
  }
  if (isGlobal) for (const [name, value] of values) variables.set(name, value)
  else addEnv(values, instruction, stage)
}

function buildArg(name: string, { line }: Instruction, { buildArgs }: Stage): string | undefined {
  const value = Object.hasOwn(buildArgs, name) ? buildArgs[name] : undefined
  if (value !== undefined && !isText(value)) {
    throw invalidDockerfile(`the build argument ${name} has characters that are not text`, line)
  }
  return value === undefined ? undefined : literally(value)
}

export function applyEnv(instruction: Instruction, stage: Stage): void {
  const { rest, line } = instruction
  const words = stage.words.split(rest)
  const values = new Map<string, string>()
  for (const word of words[0]?.includes('=') ? words : [toPair(rest)]) {
    const [name, value] = readPair(word, instruction, stage)
    if (value === undefined) {
      throw invalidDockerfile('write ENV as "ENV name=value …" or "ENV name value"', line)
    }
    values.set(name, value)
  }
  for (const name of values.keys()) stage.fixed.add(name)
  addEnv(values, instruction, stage)
}

/** Converts the form `ENV name value`, where the value is all text after the name. */
function toPair(rest: string): string {
  const end = rest.search(/\s/)
  return end === -1 ? rest : `${rest.slice(0, end)}=${rest.slice(end).trim()}`
}

function readPair(
  word: string,
  { keyword, line }: Instruction,
  { words, variables }: Pick<Stage, 'words' | 'variables'>,
): [name: string, value: string | undefined] {
  const equals = word.indexOf('=')
  const name = words.expand(equals === -1 ? word : word.slice(0, equals), { line, variables })
  if (!/^[^\s=$\0]+$/.test(name)) {
    throw invalidDockerfile(`${keyword} needs a variable name without spaces, "=" and "$"`, line)
  }
  const value =
    equals === -1 ? undefined : words.expand(word.slice(equals + 1), { line, variables })
  return [name, value]
}

function addEnv(
  values: ReadonlyMap<string, string>,
  { keyword, rest }: Instruction,
  { steps, variables }: Stage,
): void {
  if (values.size === 0) return
  // A value with a reference is known only after this step: later steps refer to the variable instead. Otherwise
  // `ENV PATH=/a:$PATH` and `ENV PATH=/b:$PATH` would add `/a` twice.
  for (const [name, value] of values)
    variables.set(name, hasReference(value) ? `\${${name}}` : value)
  const args = [...values].flat().map(toStepText)
  steps.push({ type: 'ENV', args, title: `${keyword} ${rest}` })
}
