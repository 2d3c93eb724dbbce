import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderConfigurationPage } from './configuration.ts'

const page = renderConfigurationPage()

test('defaults are shown as an operator writes them, never as objects', () => {
  assert.doesNotMatch(page, /\[object/)
  assert.match(page, /^\| `ATOLL_LISTEN` \| `127\.0\.0\.1:3000` \|/m)
  assert.match(page, /^\| `ATOLL_NAMESERVERS` \| `8\.8\.8\.8,1\.1\.1\.1` \|/m)
  assert.match(page, /^\| `ATOLL_REGISTRIES` \| `docker\.io,ghcr\.io,/m)
  assert.match(page, /^\| `ATOLL_DOMAIN` \| {2}\|/m)
})
