import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from './config.ts'

test('an empty environment gives the defaults, without an init token', () => {
  assert.deepEqual(loadConfig({}), {
    port: 49_983,
    guestProgram: '/.atoll/guest',
    initToken: undefined,
    stateFile: '/run/atoll/envd.json',
    terminalAddon: undefined,
    libcAddon: undefined,
    path: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  })
})

test('an empty init token counts as absent', () => {
  assert.equal(loadConfig({ ATOLL_INIT_TOKEN: '' }).initToken, undefined)
})

for (const port of ['', '65536', '-1', '8080x', '1e3']) {
  test(`'${port}' is not a port`, () => {
    assert.throws(() => loadConfig({ ATOLL_ENVD_PORT: port }), /ATOLL_ENVD_PORT/)
  })
}
