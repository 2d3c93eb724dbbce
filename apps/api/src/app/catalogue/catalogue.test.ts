import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import type { CatalogueTemplate } from '../../domain/catalogue.ts'
import { createCatalogue } from './catalogue.ts'

const tools: CatalogueTemplate = {
  nodeTemplateId: 'toolsv1',
  name: 'tools',
  alias: 'tools-v1',
  description: 'Tools for tests',
  leastMemoryMb: 512,
  isInstalled: false,
}

test('a wait past its limit ends with the progress of the install', async () => {
  const unused = () => assert.fail('not needed here')
  const { promise: done, resolve: finish } = Promise.withResolvers<void>()
  const install = { progress: { label: 'Debian packages', fraction: 0.639 }, done }
  const catalogue = createCatalogue({
    entries: { read: unused, resourcesOf: unused, addInstalled: unused },
    nodes: { isOnSomeNode: unused },
    installs: {
      ...{ begin: () => install, beginInBackground: unused, find: () => install },
      ...{ failureOf: unused, close: unused },
    },
    isOnDemand: true,
  })
  const { signal } = new AbortController()
  const unlimited = catalogue.provide(tools, signal)
  await assert.rejects(catalogue.provide(tools, signal, 1), (error) => {
    assert.ok(error instanceof Fault)
    assert.deepEqual([error.kind, error.reason], ['unavailable', 'template_installing'])
    assert.match(
      error.message,
      /tools-v1 is still being installed \(63 %\).*template install tools/,
    )
    return true
  })
  finish()
  await unlimited
})
