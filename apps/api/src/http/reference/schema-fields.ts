import { html, prose } from './html.ts'
import type { Html } from './html.ts'
import type { SchemaObject } from './reference-document.ts'

/** Renders the fields of an object as a table; any other schema as one line. */
export function renderSchema(schema: SchemaObject): Html {
  if (!schema.properties) return renderType(schema)
  const required = new Set(schema.required)
  const rows = Object.entries(schema.properties).map(
    ([name, field]) =>
      html`<tr>
        <td>
          <code>${name}</code>${required.has(name) ? html`<b title="required">*</b>` : undefined}
        </td>
        <td>${renderType(field)}</td>
        <td>
          ${field.deprecated ? 'Deprecated. ' : undefined}${field.description === undefined ? undefined : prose(field.description)}
        </td>
      </tr> `,
  )
  return html`<table>
    ${rows}
  </table>`
}

function renderType(schema: SchemaObject): Html {
  const { $ref, anyOf, items, additionalProperties: values } = schema
  if ($ref !== undefined) {
    const name = $ref.replace(/^.*\//, '')
    return html`<a href="#${name}">${name}</a>`
  }
  if (anyOf) return joined(anyOf.map(renderType), ' or ')
  if (items) return html`list of ${renderType(items)}`
  if (schema.properties) return renderSchema(schema)
  if (typeof values === 'object') return html`map of text to ${renderType(values)}`
  if (schema.enum) return joined(schema.enum.map(renderValue), ' | ')
  if (schema.const !== undefined) return renderValue(schema.const)
  return html`${[schema.type].flat().join(' or ') || 'anything'}${describeBounds(schema)}`
}

function describeBounds(schema: SchemaObject): string {
  const { format, minimum, maximum, maxLength } = schema
  const known = [
    format,
    isMeaningful(minimum) ? `≥ ${minimum}` : undefined,
    isMeaningful(maximum) ? `≤ ${maximum}` : undefined,
    maxLength === undefined ? undefined : `at most ${maxLength} characters`,
    schema.default === undefined ? undefined : `default ${JSON.stringify(schema.default)}`,
  ].filter((text) => text !== undefined)
  return known.length > 0 ? ` (${known.join(', ')})` : ''
}

/** Whether a bound is worth showing; the limits of the number types are not. */
function isMeaningful(bound: number | undefined): bound is number {
  return bound !== undefined && Math.abs(bound) < 2 ** 31 - 1
}

function renderValue(value: unknown): Html {
  return html`<code>${JSON.stringify(value)}</code>`
}

function joined(parts: readonly Html[], separator: string): Html {
  return html`${parts.map((part, index) => (index === 0 ? part : html`${separator}${part}`))}`
}
