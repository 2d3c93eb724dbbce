/**
 * Finds the kind and the reason of every `new Fault(…)` in the sources. TypeScript 7 has no stable compiler API, so this
 * is a scan: it understands literals, conditional expressions and string constants, also imported ones. Each other
 * expression needs an entry in `computed`.
 */
import { join } from 'node:path/posix'
import type { FaultKind } from '@atoll/kit/fault'
import { withoutComments } from '../source-files.ts'

export interface FoundFault {
  readonly kind: FaultKind
  readonly reason: string
  /** Relative to the root of the repository. */
  readonly path: string
}

/** Value of an expression that the scan does not understand. */
export interface Computed {
  readonly path: string
  /** The first two arguments of `new Fault`, as written. */
  readonly args: string
  readonly values: readonly Pick<FoundFault, 'kind' | 'reason'>[]
}

export interface Scan {
  readonly faults: readonly FoundFault[]
  readonly problems: readonly string[]
}

/** Takes the sources by path. */
export function findFaults(
  sources: ReadonlyMap<string, string>,
  computed: readonly Computed[],
  kinds: readonly FaultKind[],
): Scan {
  const faults: FoundFault[] = []
  const problems: string[] = []
  const unused = new Set(computed)
  for (const [path, text] of sources) {
    const code = withoutComments(text)
    for (const match of code.matchAll(/\bnew Fault\(/g)) {
      const [kindText = '', reasonText = ''] = splitArguments(code, match.index + match[0].length)
      const args = `${kindText}, ${reasonText}`
      const known = computed.find((entry) => entry.path === path && entry.args === args)
      if (known) unused.delete(known)
      const found = known?.values ?? valuesOf({ sources, path, kindText, reasonText }, kinds)
      if (found) faults.push(...found.map(({ kind, reason }) => ({ kind, reason, path })))
      else problems.push(`${path}: cannot resolve new Fault(${args}, …); add it to computed`)
    }
  }
  for (const { path, args } of unused) {
    problems.push(`computed has new Fault(${args}, …), which is not in ${path}`)
  }
  return { faults, problems }
}

interface Site {
  readonly sources: ReadonlyMap<string, string>
  readonly path: string
  readonly kindText: string
  readonly reasonText: string
}

function valuesOf(
  { sources, path, kindText, reasonText }: Site,
  kinds: readonly FaultKind[],
): Computed['values'] | undefined {
  const kind = kinds.find((known) => kindText === `'${known}'`)
  const reasons = resolve(sources, path, reasonText)
  if (!kind || !reasons) return undefined
  return reasons.map((reason) => ({ kind, reason }))
}

function resolve(
  sources: ReadonlyMap<string, string>,
  path: string,
  expression: string,
): string[] | undefined {
  const [, literal] = /^'([^'\\]+)'$/.exec(expression) ?? []
  if (literal !== undefined) return [literal]
  const [, one, other] = /^[^?:]+\?([^?:]+):([^?:]+)$/.exec(expression) ?? []
  if (one !== undefined && other !== undefined) {
    const values = [one, other].map((part) => resolve(sources, path, part.trim()))
    return values.every((value) => value !== undefined) ? values.flat() : undefined
  }
  const value = /^\w+$/.test(expression) ? constant(sources, path, expression) : undefined
  return value === undefined ? undefined : [value]
}

/** Returns the value of a string constant that the file declares or imports. */
function constant(
  sources: ReadonlyMap<string, string>,
  path: string,
  name: string,
): string | undefined {
  const text = sources.get(path) ?? ''
  const declared = new RegExp(String.raw`^\s*(?:export )?const ${name} = '([^'\\]+)'`, 'm').exec(
    text,
  )
  if (declared) return declared[1]
  const imported = new RegExp(String.raw`import \{[^}]*\b${name}\b[^}]*\} from '([^']+)'`).exec(
    text,
  )
  if (imported?.[1] === undefined) return undefined
  const source = pathOf(imported[1], path)
  return source === path ? undefined : constant(sources, source, name)
}

function pathOf(specifier: string, from: string): string {
  const [, name, rest] = /^@atoll\/(\w+)\/(.+)$/.exec(specifier) ?? []
  return name === undefined ? join(from, '..', specifier) : `packages/${name}/src/${rest}.ts`
}

const openers = '([{'
const closers = ')]}'

/** Splits the arguments of a call at its commas. `start` is the index after the parenthesis. */
function splitArguments(code: string, start: number): string[] {
  const found: string[] = []
  let depth = 0
  let from = start
  for (let at = start; at < code.length; at += 1) {
    const char = code.charAt(at)
    if (char === "'" || char === '"' || char === '`') at = endOfString(code, at)
    else if (openers.includes(char)) depth += 1
    else if (depth === 0 && (char === ',' || char === ')')) {
      found.push(code.slice(from, at).trim().replace(/\s+/g, ' '))
      if (char === ')') break
      from = at + 1
    } else if (closers.includes(char)) depth -= 1
  }
  return found
}

/** Returns the index of the closing quote. Expressions inside a template may contain templates. */
function endOfString(code: string, start: number): number {
  const quote = code.charAt(start)
  for (let at = start + 1; at < code.length; at += 1) {
    if (code.charAt(at) === '\\') at += 1
    else if (code.charAt(at) === quote) return at
    else if (quote === '`' && code.startsWith('${', at)) at = endOfExpression(code, at + 2)
  }
  return code.length
}

function endOfExpression(code: string, start: number): number {
  let depth = 0
  for (let at = start; at < code.length; at += 1) {
    const char = code.charAt(at)
    if (char === "'" || char === '"' || char === '`') at = endOfString(code, at)
    else if (char === '{') depth += 1
    else if (char === '}' && depth === 0) return at
    else if (char === '}') depth -= 1
  }
  return code.length
}
