import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { joinAudience } from '@atoll/server/fleet/kubernetes/token-review'
import { run } from '@atoll/kit/run'
import { renderConfigurationPage } from './configuration.ts'
import { openHelm } from './deploy/helm.ts'
import type { Helm } from './deploy/helm.ts'

const root = join(import.meta.dirname, '..')
const chart = join(root, 'deploy/helm/atoll')
let helm: Helm
/** The chart with its default values. Rendering takes seconds where helm is emulated. */
let defaults: ReadonlyMap<string, string>

before(async () => {
  helm = await openHelm()
  defaults = await render()
})

/** Returns the objects of the chart by kind and part, such as `Deployment api`. */
async function render(...options: readonly string[]): Promise<Map<string, string>> {
  const args = ['template', 'atoll', chart, '--namespace', 'fleet', ...options]
  const { code, stdout, stderr } = await helm(...args)
  assert.equal(code, 0, stderr)
  const documents = stdout.split(/^---$/m).filter((text) => text.includes('kind:'))
  return new Map(
    documents.map((text) => {
      const kind = /^kind: (\w+)$/m.exec(text)?.[1]
      const name = /^ {2}name: (\S+)$/m.exec(text)?.[1]?.replace(/^atoll-/, '')
      return [`${kind} ${name}`, text]
    }),
  )
}

test('the chart has the version of the repository', async () => {
  const manifest = await readFile(join(root, 'package.json'), 'utf8')
  const version = /^ {2}"version": "(.+)",$/m.exec(manifest)?.[1]
  assert.ok(version)
  const text = await readFile(join(chart, 'Chart.yaml'), 'utf8')
  assert.equal(/^version: (.+)$/m.exec(text)?.[1], version)
  assert.equal(/^appVersion: (.+)$/m.exec(text)?.[1], version)
})

test('every setting in deploy exists', async () => {
  const known = new Set(
    [...renderConfigurationPage().matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name),
  )
  assert.ok(known.has('ATOLL_DATA_DIR'))
  const folders = ['deploy/helm', 'deploy/docker', 'deploy/kubernetes'].map((path) =>
    join(root, path),
  )
  let found = 0
  for (const folder of folders) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    for (const entry of entries.filter((candidate) => candidate.isFile())) {
      const text = await readFile(join(entry.parentPath, entry.name), 'utf8')
      for (const [name] of text.matchAll(/\b(ATOLL|OTEL)_[A-Z_0-9]+\b/g)) {
        assert.ok(known.has(name), `${entry.name} names ${name}, which does not exist`)
        found += 1
      }
    }
  }
  assert.ok(found > 10)
})

test('helm accepts the chart, with the settings of its values', async () => {
  const { code, stdout, stderr } = await helm('lint', '--strict', chart)
  assert.equal(code, 0, stdout + stderr)
  const settings = ['--set', 'settings.ATOLL_LOG_LEVEL=debug', '--set', 'fleetApis=10.0.0.1:3300']
  const objects = await render(...settings, '--set', 'node.extraEnv[0].name=EXTRA')
  for (const part of ['Deployment api', 'Deployment edge', 'DaemonSet node'])
    assert.match(objects.get(part) ?? '', /name: ATOLL_LOG_LEVEL\n +value: "debug"/)
  for (const part of ['Deployment edge', 'DaemonSet node'])
    assert.match(objects.get(part) ?? '', /name: ATOLL_FLEET_APIS\n +value: "10.0.0.1:3300"/)
  assert.match(objects.get('DaemonSet node') ?? '', /name: EXTRA/)
  assert.doesNotMatch(objects.get('Deployment api') ?? '', /name: EXTRA/)
})

test('only nodes are privileged, and only apis get secrets', async () => {
  const objects = defaults
  const [api = '', edge = '', node = ''] = [
    'Deployment api',
    'Deployment edge',
    'DaemonSet node',
  ].map((key) => objects.get(key))
  for (const text of [api, edge]) {
    assert.match(text, /allowPrivilegeEscalation: false/)
    assert.match(text, /readOnlyRootFilesystem: true/)
    assert.match(text, /drop: \[ALL\]/)
    assert.doesNotMatch(text, /hostPID|hostNetwork|hostPath|privileged/)
  }
  assert.match(node, /privileged: true/)
  assert.match(api, /secretKeyRef/)
  for (const text of [edge, node]) {
    assert.doesNotMatch(text, /secret(KeyRef|Name)/)
    assert.match(text, new RegExp(`audience: ${joinAudience}`))
  }
  for (const [name] of objects) assert.doesNotMatch(name, /^Secret /)
})

test('pods join with the accounts that apis accept', async () => {
  const objects = defaults
  const accepted = /edge=fleet\/([\w-]+),node=fleet\/([\w-]+)/.exec(
    objects.get('Deployment api') ?? '',
  )
  const used = ['Deployment edge', 'DaemonSet node'].map(
    (key) => /serviceAccountName: (\S+)/.exec(objects.get(key) ?? '')?.[1],
  )
  assert.deepEqual(accepted?.slice(1), used)
  for (const account of ['api', 'edge', 'node']) assert.ok(objects.has(`ServiceAccount ${account}`))
})

test('disruption budgets use the newest version that the cluster has', async () => {
  const budget = 'PodDisruptionBudget edge'
  const old = defaults.get(budget) ?? ''
  assert.match(old, /apiVersion: policy\/v1beta1/)
  const current = await render('--api-versions', 'policy/v1/PodDisruptionBudget')
  assert.match(current.get(budget) ?? '', /apiVersion: policy\/v1\n/)
})

test('network policies are on, and can be narrowed to the networks of nodes', async () => {
  assert.doesNotMatch(defaults.get('NetworkPolicy api') ?? '', /cidr/)
  const narrow = await render('--set', 'networkPolicy.nodeNetworks={10.1.0.0/16}')
  assert.match(narrow.get('NetworkPolicy api') ?? '', /cidr: 10\.1\.0\.0\/16/)
  assert.match(narrow.get('NetworkPolicy edge') ?? '', /cidr: 10\.1\.0\.0\/16/)
})

test('the shell can read the scripts, and the image names no registry', async () => {
  for (const folder of ['docker', 'kubernetes']) {
    const names = await readdir(join(root, 'deploy', folder))
    for (const name of names.filter((entry) => entry.endsWith('.sh'))) {
      const path = join(root, 'deploy', folder, name)
      const shell = (await readFile(path, 'utf8')).startsWith('#!/bin/bash') ? 'bash' : 'sh'
      await run(shell, ['-n', path])
    }
  }
  const text = await readFile(join(root, 'deploy/docker/Dockerfile'), 'utf8')
  assert.deepEqual(text.match(/^FROM .*$/gm), ['FROM ${BASE_IMAGE}'])
})
