import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toOpenApi } from './openapi.ts'
import { operations } from './operations.ts'

const document = toOpenApi(operations, '0.1.0')
const text = JSON.stringify(document)

test('every operation is in the document, with its parameters, body and replies', () => {
  for (const { method, path, replies, errors } of operations) {
    const found = document.paths[path]?.[method.toLowerCase()]
    assert.ok(found, `${method} ${path}`)
    assert.deepEqual(
      Object.keys(Object(found.responses)).map(Number),
      [...Object.keys(replies).map(Number), ...errors].toSorted((a, b) => a - b),
    )
  }
  assert.match(text, /"requestBody":\{"required":true,.*NewSandboxV2/)
})

test('every reference in the document resolves', () => {
  const schemas = Object(document.components).schemas
  const references = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)]
  assert.ok(references.length > 10)
  for (const [, name] of references) assert.ok(name && schemas[name], `component ${name}`)
  assert.doesNotMatch(text, /\$defs/)
})

test('every component has a definition and is not only a reference', () => {
  const schemas: Record<string, Record<string, unknown>> = Object(document.components).schemas
  for (const [name, schema] of Object.entries(schemas)) {
    assert.ok('type' in schema || 'enum' in schema || 'anyOf' in schema, name)
  }
  assert.deepEqual(schemas['Error']?.['required'], ['code', 'message'])
})

test('operation ids are unique, and paths are declared once per method', () => {
  const ids = operations.map(({ id }) => id)
  const places = operations.map(({ method, path }) => `${method} ${path}`)
  assert.equal(new Set(ids).size, ids.length)
  assert.equal(new Set(places).size, places.length)
})

test('path parameters match the parameter schema', () => {
  for (const { path, params } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    assert.deepEqual(Object.keys(params.shape), named)
  }
})

test('only mandatory query parameters are marked as required', () => {
  const required = operations.flatMap(({ method, path }) => {
    const { parameters } = Object(document.paths[path]?.[method.toLowerCase()])
    const found: { in: string; name: string; required: boolean }[] = parameters
    return found.filter((each) => each.in === 'query' && each.required).map(({ name }) => name)
  })
  assert.deepEqual(required.toSorted(), ['metric', 'path', 'sandbox_ids', 'sandbox_ids'])
})
