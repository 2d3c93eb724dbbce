import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CatalogueTemplate } from '../../domain/catalogue.ts'
import type { Template } from '../../domain/template.ts'
import { createFindOrInstall } from './find-or-install.ts'

const entry: CatalogueTemplate = {
  nodeTemplateId: 'toolsv1',
  name: 'tools',
  alias: 'tools-v1',
  description: 'Tools for tests',
  leastMemoryMb: 512,
  isInstalled: true,
}

const installed: Template = {
  id: 't1',
  buildId: 'b1',
  alias: entry.alias,
  public: true,
  nodeTemplateId: entry.nodeTemplateId,
  snapshotId: undefined,
  snapshotOf: undefined,
  nodeId: undefined,
  isDurable: false,
  envdVersion: undefined,
  resources: { cpuCount: 1, memoryMb: 512, diskSizeMb: 1024 },
}

/** Looks up the template while another request installs it: the record appears after the given number of lookups. */
async function findWhileInstalling(lookupsBefore: number): Promise<Template> {
  let lookups = 0
  const unused = () => Promise.reject(new Error('not needed here'))
  const findOrInstall = createFindOrInstall({
    templates: {
      async locate() {
        lookups += 1
        if (lookups <= lookupsBefore) return undefined
        return { id: installed.id, teamId: undefined, public: true, isSnapshot: false }
      },
      findBuild: async () => installed,
    },
    catalogue: {
      list: unused,
      find: async () => entry,
      findById: async () => entry,
      install: () => assert.fail('the template is installed'),
      provide: async () => {},
      isOnSomeNode: () => assert.fail('not asked for'),
      installOnOthers: () => assert.fail('the template is installed'),
    },
  })
  return findOrInstall({
    text: entry.alias,
    teamId: 'mine',
    signal: new AbortController().signal,
  })
}

test('a template that another request installs during the lookup is found', async () => {
  for (const lookupsBefore of [0, 1, 2]) {
    assert.equal(await findWhileInstalling(lookupsBefore), installed, `${lookupsBefore} lookups`)
  }
})
