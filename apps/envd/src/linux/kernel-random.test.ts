import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { randomName } from './kernel-random.ts'

test('names are long and unique', () => {
  const names = new Set(Array.from({ length: 100 }, randomName))
  assert.equal(names.size, 100)
  for (const name of names) assert.match(name, /^[0-9a-f]{32}$/)
})

test('no source file uses a random generator that restored sandboxes share', () => {
  const root = join(import.meta.dirname, '..')
  const files = globSync('**/*.ts', { cwd: root }).filter(
    (path) => !path.endsWith('.test.ts') && !path.startsWith('testing/'),
  )
  assert.ok(files.length > 80, `${files.length} files seen`)
  const shared = /\brandom(UUID|Bytes|Int|FillSync)\b|Math\.random|getRandomValues|@atoll\/kit\/id/
  const users = files.filter((path) => shared.test(readFileSync(join(root, path), 'utf8')))
  assert.deepEqual(users, [])
})
