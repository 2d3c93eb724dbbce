/**
 * Rewrites imports for an evaluator that runs scripts: `import x from 'y'` becomes a declaration with `await`, and
 * `import('y')` a call of the kernel's importer, because the evaluator has no module loader.
 */
import { join } from 'node:path'
import { cwd } from 'node:process'
import { Script, constants } from 'node:vm'
import { findCode } from './find-code.ts'

const importer = 'globalThis[Symbol.for("atoll.import")]'

Object.assign(globalThis, { [Symbol.for('atoll.import')]: importModule })

export function rewriteImports(code: string): string {
  if (!code.includes('import')) return code
  const isCode = findCode(code)
  const declarations = code.replace(declaration, (statement, clause, _quote, name, offset) => {
    if (!isCode(offset)) return statement
    return declare(clause, `await ${importer}(${JSON.stringify(name)})`)
  })
  const isRewritten = findCode(declarations)
  return declarations.replace(/\bimport(\s*)\(/g, (call, space, offset) => {
    const isCall = isRewritten(offset) && declarations[offset - 1] !== '.'
    return isCall ? `${importer}${space}(` : call
  })
}

/** Import at the start of a line: the clause, if any, and the name of the module. */
const declaration =
  /(?<=^|\n|;)[ \t]*import\s*(?:((?!type\b)[\w$*{][^'"`;()]*?)\s*\bfrom\s*)?(['"])([^'"\n]+)\2[ \t]*;?/g

/** Returns the declaration for `a`, `* as a`, `{ a as b }` or a combination. */
function declare(clause: string | undefined, loaded: string): string {
  if (clause === undefined) return `${loaded};`
  const namespace = /\*\s*as\s+([\w$]+)/.exec(clause)?.[1]
  const first = /^\s*([\w$]+)/.exec(clause)?.[1]
  const named = (/\{([^}]*)\}/.exec(clause)?.[1] ?? '').split(',').flatMap((part) => {
    const name = part.trim().replace(/\s+as\s+/, ': ')
    return name === '' || name.startsWith('type ') ? [] : [name]
  })
  const parts = [...(first === undefined ? [] : [`default: ${first}`]), ...named].join(', ')
  if (namespace === undefined) return `const { ${parts} } = ${loaded};`
  return `const ${namespace} = ${loaded}, { ${parts} } = ${namespace};`
}

/** Imports a module as a script in the working directory would. */
async function importModule(name: string, options?: ImportCallOptions): Promise<unknown> {
  const script = new Script('(name, options) => import(name, options)', {
    filename: join(cwd(), 'cell.js'),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  return script.runInThisContext()(name, options)
}
