import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const moduleUrl = (name: string) => JSON.stringify(fileURLToPath(new URL(name, import.meta.url)))

/** Makes 40 MB of garbage that outlives a few collections, and prints the private memory before and after. */
const program = `
import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import { compactMemory } from ${moduleUrl('./compact-memory.ts')}
import { lazyLibc } from ${moduleUrl('./libc.ts')}
const privateKb = () => Number(/^Private_Dirty:\\s+(\\d+)/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))[1])
let kept = Array.from({ length: 400_000 }, (_, index) => ({ index, text: 'x' + index }))
const libc = lazyLibc()()
kept = undefined
const before = privateKb()
compactMemory(libc)
console.log(JSON.stringify([before - privateKb(), runInNewContext('typeof gc')]))
`

test('garbage is collected, and its memory goes back to the kernel', async () => {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program])
  const [freedKb, collector] = JSON.parse(stdout)
  assert.ok(freedKb > 10_000, `only ${freedKb} KB were freed`)
  assert.equal(collector, 'undefined', 'programs must not see the collector')
})
