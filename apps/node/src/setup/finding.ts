import { styleText } from 'node:util'

/** Result of one check. `missing`: Atoll cannot work; `warn`: it works with a limitation. */
export interface Finding {
  readonly name: string
  readonly state: 'ok' | 'warn' | 'missing'
  readonly detail: string
  /** Command or advice that fixes the problem. */
  readonly fix?: string
}

/** Formats one line per finding, followed by its fix if there is one. */
export function formatFindings(
  findings: readonly Finding[],
  options: { readonly color?: boolean } = {},
): string {
  const width = Math.max(...findings.map(({ name }) => name.length))
  const paint = (state: Finding['state']) => {
    const text = state.padEnd(7)
    return options.color ? styleText(colors[state], text, { validateStream: false }) : text
  }
  const lines = findings.map(({ name, state, detail, fix }) => {
    const line = `${paint(state)}  ${name.padEnd(width)}  ${detail}`.trimEnd()
    return fix === undefined ? line : `${line}\n${' '.repeat(9)}fix: ${fix}`
  })
  const missing = findings.filter(({ state }) => state === 'missing').length
  const verdict =
    missing === 0 ? 'Atoll can run here.' : `${missing} needed: see the fix lines above.`
  return [...lines, '', verdict].join('\n')
}

const colors = { ok: 'green', warn: 'yellow', missing: 'red' } as const
