/** Published packages, unmodified, over HTTPS: they know no other address than E2B_DOMAIN. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { installWithTls } from '@atoll/system-tests/secure-installation'
import type { SecureInstallation } from '@atoll/system-tests/secure-installation'
import { installNpmPackages, npmPackagesAreCurrent } from '../../tools/npm-packages.mjs'

/** A folder that is no workspace: 250 MB of packages that only these tests need. */
const integrations = join(import.meta.dirname, 'integrations')

suite('packages that build https names', () => {
  let secure: SecureInstallation

  before(async () => {
    secure = await installWithTls({ ATOLL_RUNTIME: 'gvisor' })
    if (!npmPackagesAreCurrent(integrations)) await installNpmPackages(integrations)
  })
  after(() => secure[Symbol.asyncDispose]())

  test('e2b 1.5 creates a sandbox, runs commands, uses files and kills the sandbox', async () => {
    const client = join(import.meta.dirname, 'sdk-1-5-client.ts')
    assert.equal(await secure.runClient([client]), 'done')
  })

  test('computesdk runs commands, uses files, opens a URL and destroys the sandbox', async () => {
    assert.equal(await secure.runClient([join(integrations, 'computesdk.mjs')]), 'done')
  })

  test('a workspace of @mastra/e2b stops, starts again with its files, and is destroyed', async () => {
    assert.equal(await secure.runClient([join(integrations, 'mastra.mjs')]), 'done')
  })

  test('an agent of @openai/agents-extensions reads a file, serves one and is resumed', async () => {
    assert.equal(await secure.runClient([join(integrations, 'openai-agents.mjs')]), 'done')
  })
})
