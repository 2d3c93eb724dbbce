/**
 * Splits and expands the words of a Dockerfile by the rules of BuildKit's shell lexer, with one difference: a variable
 * that the file does not set may come from the image, which is unknown here, so its reference stays unexpanded.
 *
 * Threats: the text is untrusted. Variables that refer to variables can double in size with each line, hence the limit
 * on the total size of expansions; nested references use stack, hence the limit on depth.
 */
import { invalidDockerfile } from './instructions.ts'

export type Variables = ReadonlyMap<string, string>

export interface WordReader {
  /** Splits at white space outside of quotes; the words keep their quotes. */
  split(text: string): string[]
  /** Removes quotes and replaces variables by their values. */
  expand(word: string, place: Place): string
}

export interface Place {
  readonly line: number
  readonly variables: Variables
}

const expandedLimitKib = 1024
const depthLimit = 32

/** Creates a reader for one file; the expansion limit applies to all words of the file together. */
export function createWordReader(escape: string): WordReader {
  let expandedChars = 0
  return {
    split: (text) => splitWords(text, escape),
    expand(word, place) {
      const take = (value: string) => {
        expandedChars += value.length
        if (expandedChars <= expandedLimitKib * 1024) return value
        const message = `up to here variables expand to more than ${expandedLimitKib} KiB`
        throw invalidDockerfile(message, place.line)
      }
      return readUntil({ ...place, word, escape, take, at: 0, depth: 0 }, undefined)
    },
  }
}

function splitWords(text: string, escape: string): string[] {
  const words: string[] = []
  let start: number | undefined
  let quote: string | undefined
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (quote === undefined && isBlank(char)) {
      if (start !== undefined) words.push(text.slice(start, at))
      start = undefined
      continue
    }
    start ??= at
    if (char === escape && quote !== "'") at += 1
    else if (char === quote) quote = undefined
    else if (quote === undefined && (char === '"' || char === "'")) quote = char
  }
  if (start !== undefined) words.push(text.slice(start))
  return words
}

/** Stands for a literal `$`. Checked text never contains NUL, so the marker is unambiguous. */
const dollar = '\0'

/** Marks every `$` of a text as literal. */
export function literally(text: string): string {
  return text.replaceAll('$', dollar)
}

/** Whether an expanded text still refers to a variable whose value is unknown here. */
export function hasReference(expanded: string): boolean {
  return expanded.includes('$')
}

/** Escapes literal `$`, because steps expand references themselves. */
export function toStepText(expanded: string): string {
  return expanded.replaceAll(dollar, String.raw`\$`)
}

/** Returns the text of a value that no step expands again, such as a path of COPY. */
export function toFinalText(expanded: string, line: number): string {
  const [, name] = /\$\{?(\w+)/.exec(expanded) ?? []
  if (name !== undefined) {
    throw invalidDockerfile(
      `the value of the variable ${shown(name)} is not known here: set it with ARG or ENV before this line`,
      line,
    )
  }
  return expanded.replaceAll(dollar, '$')
}

function isBlank(char: string): boolean {
  return char.trim() === ''
}

/** Word and read position. */
interface Source extends Place {
  readonly word: string
  readonly escape: string
  /** Counts expanded characters against the limit. */
  readonly take: (value: string) => string
  at: number
  depth: number
}

/** Reads up to and including the character `end`, or to the end of the word. */
function readUntil(source: Source, end: '}' | undefined): string {
  const { word, escape } = source
  let result = ''
  while (source.at < word.length) {
    const char = word.charAt(source.at)
    source.at += 1
    if (char === end) return result
    if (char === "'") result += readSingleQuoted(source)
    else if (char === '"') result += readDoubleQuoted(source)
    else if (char === '$') result += readReference(source)
    else if (char === escape) result += literally(word.charAt(source.at++))
    else result += char
  }
  if (end !== undefined) throw invalidDockerfile('a "${" has no "}"', source.line)
  return result
}

function readSingleQuoted(source: Source): string {
  const end = source.word.indexOf("'", source.at)
  if (end === -1) throw invalidDockerfile('a single quote is not closed', source.line)
  const quoted = source.word.slice(source.at, end)
  source.at = end + 1
  return literally(quoted)
}

function readDoubleQuoted(source: Source): string {
  const { word, escape } = source
  let result = ''
  while (source.at < word.length) {
    const char = word.charAt(source.at)
    const next = word.charAt(source.at + 1)
    source.at += 1
    if (char === '"') return result
    if (char === '$') {
      result += readReference(source)
    } else if (char === escape && (next === '"' || next === '$' || next === escape)) {
      result += literally(next)
      source.at += 1
    } else {
      result += char
    }
  }
  throw invalidDockerfile('a double quote is not closed', source.line)
}

/** Reads the part after `$`: `NAME`, `{NAME}`, or `{NAME` with an operator such as `:-`, a word and `}`. */
function readReference(source: Source): string {
  if (source.word.charAt(source.at) !== '{') {
    const name = readName(source)
    return name === '' ? literally('$') : source.take(source.variables.get(name) ?? `$${name}`)
  }
  source.at += 1
  const name = readName(source)
  if (name === '') throw invalidDockerfile('a "${" has no name of a variable', source.line)
  const operator = readOperator(source)
  const value = source.variables.get(name)
  if (operator === '}') return source.take(value ?? `\${${name}}`)
  const word = readNested(source)
  const isSet = operator.startsWith(':') ? value !== undefined && value !== '' : value !== undefined
  if (operator.endsWith('+')) return isSet ? word : ''
  if (isSet) return source.take(value ?? '')
  if (operator.endsWith('-')) return word
  throw invalidDockerfile(`the variable ${shown(name)} is required and has no value`, source.line)
}

function readNested(source: Source): string {
  source.depth += 1
  if (source.depth > depthLimit) {
    throw invalidDockerfile(`variables are nested more than ${depthLimit} deep`, source.line)
  }
  const word = readUntil(source, '}')
  source.depth -= 1
  return word
}

function readName(source: Source): string {
  const name = /[a-z_][a-z0-9_]*|/iy
  name.lastIndex = source.at
  const [found = ''] = name.exec(source.word) ?? []
  source.at += found.length
  return found
}

function readOperator(source: Source): string {
  const operator = /}|:?[-+?]/y
  operator.lastIndex = source.at
  const [found] = operator.exec(source.word) ?? []
  if (found === undefined) {
    throw invalidDockerfile(
      'of "${…}" only "-", "+" and "?", with or without ":", are supported',
      source.line,
    )
  }
  source.at += found.length
  return found
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 40))
}
