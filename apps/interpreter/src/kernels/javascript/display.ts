import { inspect } from 'node:util'
import type { Bundle } from './answers.ts'

/** Describes a value by media type. Objects may bring their own description, as in other notebooks. */
export function describe(value: unknown): Bundle {
  return { 'text/plain': textOf(value), ...ownDescription(value) }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : inspect(value, { depth: 4, maxArrayLength: 1000 })
}

function ownDescription(value: unknown): Bundle {
  if (typeof value !== 'object' || value === null) return {}
  const method: unknown = Reflect.get(value, Symbol.for('Jupyter.display'))
  if (typeof method !== 'function') return {}
  const described: unknown = method.call(value)
  return typeof described === 'object' && described !== null ? { ...described } : {}
}
