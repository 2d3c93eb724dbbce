import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rewriteImports } from './rewrite-imports.ts'

const load = (name: string) => `await globalThis[Symbol.for("atoll.import")]("${name}")`

const cases: ReadonlyArray<readonly [string, string]> = [
  [`import fs from 'fs'`, `const { default: fs } = ${load('fs')};`],
  [`import * as p from "path";`, `const p = ${load('path')}, {  } = p;`],
  [`import a, { b as c, d } from 'x'`, `const { default: a, b: c, d } = ${load('x')};`],
  [`import 'side-effect'`, `${load('side-effect')};`],
  [`import {\n  a,\n  b\n} from 'x'\na()`, `const { a, b } = ${load('x')};\na()`],
  [`await import('x')`, load('x').replace('("x")', "('x')")],
  ['const text = `\nimport a from "b"\n`', 'const text = `\nimport a from "b"\n`'],
  [`// import('x')\n"import('y')"`, `// import('x')\n"import('y')"`],
  [`obj.import('x')`, `obj.import('x')`],
]
for (const [code, expected] of cases) {
  test(`${JSON.stringify(code)} is rewritten`, () => assert.equal(rewriteImports(code), expected))
}
