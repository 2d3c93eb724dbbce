import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findViolations } from './layers.ts'
import { parseSource, readSourceFiles } from './source-files.ts'

const root = join(import.meta.dirname, '..')
const files = readSourceFiles(root)

/** Minimum number of files per folder. Guards against a search pattern that no longer matches. */
const minimumFiles = {
  'apps/api': 15,
  'apps/cli': 8,
  'apps/dashboard': 40,
  'apps/edge': 8,
  'apps/egress': 12,
  'apps/envd': 12,
  'apps/node': 20,
  'apps/server': 2,
  'packages/client': 3,
  'packages/contracts': 5,
  'packages/kit': 7,
  'packages/simulated-node': 5,
}

for (const [place, minimum] of Object.entries(minimumFiles)) {
  test(`the files of ${place} are found`, () => {
    const seen = files.filter(({ path }) => path.startsWith(`${place}/src/`)).length
    assert.ok(seen >= minimum, `Found ${seen} files in ${place}, expected at least ${minimum}`)
  })
}

test('imports follow the layers', () => {
  const violations = findViolations(files)
  assert.equal(violations.map((v) => `${v.path}:${v.line} ${v.message}`).join('\n'), '')
})

const forbiddenName =
  /^(utils?|helpers?|common|misc|types|managers?|base-.*|legacy|v2)(\.(test|contract))?(\.\w+)?$/

test('no file or folder has a vague name', () => {
  const paths = globSync(['{apps,packages,tests,tools,bench,docs,bin}/**'], {
    cwd: root,
    exclude: (name) => /(^|\/)(node_modules|gen)$/.test(name),
  })
  assert.ok(paths.length > 100, `Found only ${paths.length} paths`)
  const vague = paths.filter((path) => forbiddenName.test(path.slice(path.lastIndexOf('/') + 1)))
  assert.deepEqual(vague, [])
})

test('no two decisions share a number', () => {
  const numbers = globSync('docs/decisions/*.md', { cwd: root }).flatMap(
    (path) => /\/(\d+)-[^/]+\.md$/.exec(path)?.[1] ?? [],
  )
  assert.ok(numbers.length > 0, 'Found no decisions')
  assert.deepEqual(
    numbers.filter((number, index) => numbers.indexOf(number) !== index),
    [],
  )
})

const cases: ReadonlyArray<readonly [string, string, RegExp | undefined]> = [
  ['apps/api/src/domain/team.ts', "import { x } from '@atoll/kit/fault'", undefined],
  [
    'apps/api/src/domain/team.ts',
    "import { x } from '../app/teams.ts'",
    /domain may not import app/,
  ],
  ['apps/api/src/domain/team.ts', "import { z } from 'zod'", /free of I\/O/],
  ['apps/api/src/domain/team.ts', "import fs from 'node:fs/promises'", /free of I\/O/],
  [
    'apps/api/src/domain/team.ts',
    "import '@atoll/contracts/teams/api-keys'",
    /domain may not import contracts/,
  ],
  [
    'apps/api/src/domain/team.ts',
    "import type { NetworkRules } from '@atoll/contracts/network/rules'",
    undefined,
  ],
  [
    'apps/api/src/domain/team.ts',
    "import { NetworkRules } from '@atoll/contracts/network/rules'",
    /domain may not import contracts/,
  ],
  [
    'apps/node/src/state/records.ts',
    "import { NetworkRules } from '@atoll/contracts/network/rules'",
    undefined,
  ],
  [
    'apps/node/src/state/records.ts',
    "import { x } from '@atoll/contracts/teams/api-keys'",
    /state may not import contracts/,
  ],
  ['apps/api/src/app/teams.ts', "import { x } from '../domain/team.ts'", undefined],
  ['apps/api/src/app/teams.ts', "import { x } from '../db/teams.ts'", /app may not import db/],
  ['apps/api/src/app/teams.test.ts', "import { x } from '../db/teams.ts'", undefined],
  ['apps/api/src/http/teams.ts', "import { x } from '../app/teams.ts'", undefined],
  ['apps/api/src/http/teams.ts', "import { x } from '@atoll/contracts/teams/api-keys'", undefined],
  ['apps/api/src/db/teams.ts', "import { x } from '../http/teams.ts'", /db may not import http/],
  ['apps/api/src/db/teams.ts', "import { x } from '../app/teams.ts'", /db may not import app/],
  [
    'apps/api/src/db/teams.ts',
    "import { x } from '../api.ts'",
    /may not import the composition root/,
  ],
  ['apps/api/src/api.ts', "import { x } from './db/teams.ts'", undefined],
  ['apps/api/src/composition/teams.ts', "import { x } from '../db/teams.ts'", undefined],
  [
    'apps/api/src/http/teams.ts',
    "import { x } from '../composition/teams.ts'",
    /http may not import the composition root/,
  ],
  ['apps/api/src/api.ts', "import { x } from '@atoll/node'", /api may not import node/],
  ['apps/api/src/api.ts', "import { x } from '../../node/src/node.ts'", /by a relative path/],
  ['apps/api/src/api.test.ts', "import { x } from '@atoll/node/sim'", undefined],
  ['apps/api/src/api.test.ts', "import { x } from '@atoll/simulated-node/node'", undefined],
  ['apps/api/src/api.ts', "import { x } from '@atoll/simulated-node/node'", /may not import/],
  ['apps/api/src/api.test.ts', "import { x } from '@atoll/node/oci/x'", /api may not import node/],
  ['apps/server/src/server.ts', "import { x } from '@atoll/node'", undefined],
  ['apps/server/src/server.ts', "import { x } from '@atoll/envd'", /server may not import envd/],
  ['apps/cli/src/commands/up.ts', "import { x } from '@atoll/server'", undefined],
  ['apps/cli/src/commands/up.ts', "import { x } from '@atoll/api'", /cli may not import api/],
  ['apps/api/src/sim/api.ts', "import { x } from '../db/teams.ts'", undefined],
  ['apps/api/src/api.ts', "import { x } from './sim/node.ts'", /only tests may import sim/],
  ['apps/envd/src/http/init.ts', "import { x } from '../version.ts'", undefined],
  ['apps/envd/src/domain/path.ts', "import { x } from '../config.ts'", /may not import the comp/],
  ['apps/cli/src/commands/doctor.ts', "await import('@atoll/node/setup/doctor')", undefined],
  ['apps/cli/src/commands/up.ts', "import { x } from '@atoll/node'", /cli may not import node/],
  ['apps/node/src/template/envd.ts', "import { x } from '@atoll/envd/version'", undefined],
  ['apps/node/src/template/envd.ts', "import { x } from '@atoll/envd'", /node may not import envd/],
  ['packages/kit/src/log.ts', "import { x } from '@atoll/contracts/teams/api-keys'", /kit may not/],
  ['packages/kit/src/log.ts', "import { x } from '@atoll/kit/fault'", /by relative paths/],
  ['apps/envd/src/envd.ts', "import { z } from 'zod'", /envd may not reach zod/],
  ['apps/envd/src/envd.ts', "import {\n  x,\n} from '@atoll/kit/config'", /envd may not reach zod/],
  ['apps/envd/src/envd.ts', "const x = await import('pino')", /envd may not reach pino/],
  ['apps/envd/src/envd.ts', "export * from 'fastify'", /envd may not reach fastify/],
  ['apps/edge/src/edge.ts', 'const home = process.env.HOME', /only config\.ts, main\.ts/],
  ['apps/edge/src/config.ts', 'const home = process.env.HOME', undefined],
  ['apps/edge/src/edge.ts', "// import { z } from 'zod' reads process.env", undefined],
]

const config = parseSource('packages/kit/src/config.ts', "import { z } from 'zod'")
for (const [path, text, message] of cases) {
  test(`${path}: ${JSON.stringify(text)} is ${message ? 'refused' : 'allowed'}`, () => {
    const [violation] = findViolations([parseSource(path, `\n${text}\n`), config])
    if (message) assert.match(violation?.message ?? 'allowed', message)
    else assert.equal(violation, undefined)
    if (violation) assert.deepEqual([violation.path, violation.line], [path, 2])
  })
}
