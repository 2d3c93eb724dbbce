import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { findAccess } from './access.ts'
import { loadConfig } from './config.ts'

const local = { teamId: 't', apiKey: 'e2b_local', accessToken: 'sk', url: 'http://localhost:3000' }

test('URLs and key come from the credentials file of the local server', async (t) => {
  const env = await setup(t, { ...local, sandboxUrl: 'http://localhost:3002' })
  assert.deepEqual(await findAccess(loadConfig(env)), {
    apiUrl: 'http://localhost:3000',
    sandboxUrl: 'http://localhost:3002',
    apiKey: 'e2b_local',
  })
})

test('variables override the credentials file, and ATOLL_ variables override E2B_ variables', async (t) => {
  const env = await setup(t, local)
  const config = loadConfig({
    ...env,
    ATOLL_API_URL: 'http://one:1',
    E2B_API_URL: 'http://two:2',
    E2B_SANDBOX_URL: 'http://three:3',
    E2B_API_KEY: 'e2b_env',
  })
  assert.deepEqual(await findAccess(config), {
    apiUrl: 'http://one:1',
    sandboxUrl: 'http://three:3',
    apiKey: 'e2b_env',
  })
})

test('the sandbox URL defaults to the API URL', async (t) => {
  const env = await setup(t, { ...local, sandboxUrl: 'http://localhost:3002' })
  const config = loadConfig({ ...env, ATOLL_API_URL: 'http://far:1', ATOLL_API_KEY: 'e2b_far' })
  assert.equal((await findAccess(config)).sandboxUrl, 'http://far:1')
})

test('the local key is not sent to another server', async (t) => {
  const env = await setup(t, local)
  const config = loadConfig({ ...env, ATOLL_API_URL: 'http://far:3000' })
  await assert.rejects(findAccess(config), { reason: 'no_key', message: /for http:\/\/far:3000/ })
})

test('127.0.0.1 and localhost are the same server', async (t) => {
  const env = await setup(t, local)
  const config = loadConfig({ ...env, ATOLL_API_URL: 'http://127.0.0.1:3000' })
  assert.equal((await findAccess(config)).apiKey, 'e2b_local')
})

test('an empty variable counts as not set', async (t) => {
  const env = await setup(t, local)
  const config = loadConfig({ ...env, ATOLL_API_URL: '', ATOLL_API_KEY: '' })
  assert.equal((await findAccess(config)).apiKey, 'e2b_local')
})

test('the error for a missing credentials file names its path', async (t) => {
  const env = await setup(t)
  await assert.rejects(findAccess(loadConfig(env)), {
    reason: 'no_key',
    message: /credentials\.json does not exist/,
  })
})

for (const content of ['', '{"apiKey":', '{"url":"http://localhost:3000"}']) {
  test(`a credentials file with the content ${JSON.stringify(content)} is invalid`, async (t) => {
    const env = await setup(t, content)
    await assert.rejects(findAccess(loadConfig(env)), {
      reason: 'no_key',
      message: /^Invalid credentials file/,
    })
  })
}

test('the error for an invalid URL names its variable', () => {
  assert.throws(() => loadConfig({ ATOLL_API_URL: 'localhost:3000' }), /ATOLL_API_URL/)
})

async function setup(t: TestContext, content?: string | object) {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-cli-'))
  t.after(() => rm(dataDir, { recursive: true }))
  if (content !== undefined) {
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    await writeFile(join(dataDir, 'credentials.json'), text)
  }
  return { ATOLL_DATA_DIR: dataDir }
}
