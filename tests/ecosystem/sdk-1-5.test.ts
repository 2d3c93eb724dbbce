/** The published package e2b 1.5, unmodified, over HTTPS: it knows no other address than E2B_DOMAIN. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { installWithTls } from '@atoll/system-tests/secure-installation'

test('e2b 1.5 creates a sandbox, runs commands, uses files and kills the sandbox', async () => {
  await using secure = await installWithTls({ ATOLL_RUNTIME: 'gvisor' })
  const client = join(import.meta.dirname, 'sdk-1-5-client.ts')
  assert.equal(await secure.runClient([client]), 'done')
})
