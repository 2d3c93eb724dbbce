import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'

const root = join(import.meta.dirname, '..')

test('the type check reads every TypeScript file of the repository', async () => {
  // The pages have a configuration of their own, for browsers.
  const projects = [root, join(root, 'apps/dashboard')]
  const lists = projects.map((project) =>
    run(join(root, 'node_modules/.bin/tsc'), ['-p', project, '--listFilesOnly']),
  )
  const checked = new Set((await Promise.all(lists)).flatMap((list) => list.split('\n')))
  const files = globSync('{apps,packages,tests,bench,tools}/**/*.{ts,mjs}', {
    cwd: root,
    // Types of the packages that the integrations use are installed by their test only.
    exclude: ['**/node_modules/**', 'tests/ecosystem/integrations/**'],
  })
  assert.ok(files.length > 500, `Found only ${files.length} files`)
  assert.deepEqual(
    files.filter((file) => !checked.has(join(root, file))),
    [],
  )
})
