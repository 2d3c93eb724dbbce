import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setupCloud } from '../sim/setup.ts'

const halfway = { state: 'installing', progress: { label: 'packages', percent: 50 } }

test('install waits until the template is installed, with progress, and prints its name', async (t) => {
  const { run, cloud } = await setupCloud(t)
  cloud.catalogue.splice(0, 1, halfway, halfway, { state: 'installed' })
  const { code, stdout, stderr } = await run(['template', 'install', 'tools'])
  assert.deepEqual([code, stdout], [0, 'tools-v1\n'])
  assert.match(stderr, /50 % tools: packages/)
  assert.equal(cloud.requests[0], 'POST /catalogue/tools/install')
})

test('install fails with the reason of the server', async (t) => {
  const { run, cloud } = await setupCloud(t)
  cloud.catalogue.splice(0, 1, halfway, { state: 'failed', failure: 'The disk is full' })
  const failed = await run(['template', 'install', 'tools'])
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /tools is not installed: The disk is full/)
  assert.equal((await run(['template', 'install', 'other'])).code, 1)
})

test('catalogue lists the templates and their state', async (t) => {
  const { run, cloud } = await setupCloud(t)
  cloud.catalogue.splice(0, 1, halfway)
  const { stdout } = await run(['template', 'catalogue'])
  assert.match(stdout, /tools +tools-v1 +installing 50 % +Tools/)
})
