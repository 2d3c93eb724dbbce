import { stripTypeScriptTypes } from 'node:module'

/** Turns TypeScript into JavaScript. Enums and the like need a transformation, which drops imports that seem unused. */
export function stripTypes(code: string): string {
  try {
    return stripTypeScriptTypes(code, { mode: 'strip' })
  } catch (error) {
    if (!isUnsupported(error)) throw toSyntaxError(error)
    return stripTypeScriptTypes(code, { mode: 'transform' })
  }
}

function isUnsupported(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && error.code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'
  )
}

/** Hides where in the kernel the error was thrown. */
function toSyntaxError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const shown = new SyntaxError(error.message)
  shown.stack = `SyntaxError: ${error.message}`
  return shown
}
