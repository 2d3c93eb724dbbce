import assert from 'node:assert/strict'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { createMetrics } from '@atoll/server/telemetry/metrics'
import { simulateNode } from '@atoll/simulated-node/node'
import { unpackProgram } from './deploy/debian-program.ts'
import { metricsIn, queriesIn } from './deploy/queries.ts'

const deploy = join(import.meta.dirname, '../deploy')
const readDeployed = (path: string) => readFile(join(deploy, path), 'utf8')
let promtool: string

before(async () => {
  promtool = await unpackProgram('/usr/bin/promtool', 'prometheus')
})

test('promtool accepts the alert rules, and their unit tests pass', async () => {
  const cwd = join(deploy, 'prometheus')
  assert.match(await run(promtool, ['check', 'rules', 'alerts.yml'], { cwd }), /SUCCESS: 12 rules/)
  assert.match(await run(promtool, ['test', 'rules', 'alerts.test.yml'], { cwd }), /SUCCESS/)
})

test('Prometheus can parse every query of the dashboard', async () => {
  const queries = queriesIn('.json', await readDeployed('grafana/atoll.json'))
  const rules = queries.map((expr, index) => ({
    record: `query${index}`,
    expr: expr.replaceAll('$instance', '.*'),
  }))
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-queries-'))
  const path = join(folder.path, 'rules.yml')
  await writeFile(path, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  assert.match(await run(promtool, ['check', 'rules', path]), /SUCCESS/)
})

/** Names as queries use them, from the types that a scrape declares. */
async function exposedNames(): Promise<ReadonlySet<string>> {
  const metrics = await createMetrics()
  metrics.watchNode(simulateNode().transport)
  const scraped = await metrics.render()
  const types = [...scraped.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  assert.ok(types.length > 20)
  // Prometheus itself adds `up`.
  const names = types.flatMap(([, name = '', type]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  )
  return new Set([...names, 'up'])
}

for (const [name, path] of [
  ['dashboard', 'grafana/atoll.json'],
  ['alert rules', 'prometheus/alerts.yml'],
] as const) {
  test(`every query of the ${name} names metrics that the server exposes`, async () => {
    const exposed = await exposedNames()
    const queries = queriesIn(path, await readDeployed(path))
    assert.ok(queries.length >= 12)
    for (const query of queries) {
      const used = metricsIn(query)
      assert.ok(used.length > 0, query)
      for (const metric of used) assert.ok(exposed.has(metric), `${metric} in ${query}`)
    }
  })
}

test('a misspelt metric is found in a query', () => {
  const query = 'sum by (le) (rate(atoll_x_total{a="b_c"}[5m])) / ignoring(kind) up > 0.5'
  assert.deepEqual(metricsIn(query), ['atoll_x_total', 'up'])
})
