import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderBanner, renderStopMessage } from './banner.ts'
import type { BannerFacts } from './banner.ts'

const facts: BannerFacts = {
  apiUrl: 'http://127.0.0.1:3000',
  sandboxUrl: 'http://127.0.0.1:3000',
  dataDir: '/var/lib/atoll',
  isDefaultDataDir: true,
  hasCredentials: true,
}

function exportsOf(banner: string): string[] {
  return banner.split('\n').flatMap((line) => /^ {2}export (.*)$/.exec(line)?.[1] ?? [])
}

test('the export lines of a later start read the key from its file', () => {
  assert.deepEqual(exportsOf(renderBanner(facts)), [
    'E2B_API_URL=http://127.0.0.1:3000',
    'E2B_SANDBOX_URL=http://127.0.0.1:3000',
    'E2B_DOMAIN=localhost:3000',
    'E2B_API_KEY=$(bin/atoll key show)',
  ])
})

test('the first start shows the key, the token and where they are kept', () => {
  const banner = renderBanner({ ...facts, firstCredentials: { apiKey: 'k1', accessToken: 't1' } })
  assert.match(banner, /k1\n.*t1\n\n.*once.*\/var\/lib\/atoll\/credentials.json/)
  assert.equal(exportsOf(banner)[3], 'E2B_API_KEY=k1')
})

test('a data directory of its own is named in every command, quoted for the shell', () => {
  const own = { ...facts, dataDir: "/srv/it's", isDefaultDataDir: false }
  const word = String.raw`'/srv/it'\''s'`
  assert.equal(
    exportsOf(renderBanner(own))[3],
    `E2B_API_KEY=$(ATOLL_DATA_DIR=${word} bin/atoll key show)`,
  )
  assert.ok(renderStopMessage(2, own).includes(`ATOLL_DATA_DIR=${word} bin/atoll down`))
})

test('without the file no command is offered that would fail', () => {
  const banner = renderBanner({ ...facts, hasCredentials: false })
  assert.doesNotMatch(banner, /key show/)
  assert.match(banner, /There is no \/var\/lib\/atoll\/credentials.json/)
})

test('the stop message counts the sandboxes that keep running', () => {
  assert.match(renderStopMessage(1, facts), /1 sandbox keeps running/)
  assert.match(renderStopMessage(6, facts), /6 sandboxes keep running[^]*bin\/atoll down/)
  assert.match(renderStopMessage(undefined, facts), /All sandboxes keep running/)
  assert.doesNotMatch(renderStopMessage(0, facts), /down/)
})

test('the dashboard is named, with a link that signs in when there is a key for it', () => {
  const dashboardUrl = 'http://ui.localhost:3000'
  const shown = { ...facts, dashboardUrl, signInUrl: `${dashboardUrl}/sign-in#token` }
  assert.match(renderBanner(shown), /Dashboard {2}http:\/\/ui\.localhost:3000\n/)
  assert.match(renderBanner(shown), /works once[^]*http:\/\/ui\.localhost:3000\/sign-in#token\n/)
  assert.doesNotMatch(renderBanner({ ...shown, hasCredentials: false }), /sign-in#/)
  assert.doesNotMatch(renderBanner(facts), /ashboard/)
})

test('with HTTPS the domain is enough for the SDK, and a local CA must be trusted', () => {
  const tls = { domain: 'atoll.localhost:8443', isLocalCa: true }
  const banner = renderBanner({ ...facts, tls })
  assert.match(banner, /API {8}https:\/\/api\.atoll\.localhost:8443/)
  assert.deepEqual(exportsOf(banner), [
    'E2B_DOMAIN=atoll.localhost:8443',
    'E2B_API_KEY=$(bin/atoll key show)',
    'NODE_EXTRA_CA_CERTS=/var/lib/atoll/tls/ca.crt',
  ])
  const files = renderBanner({ ...facts, tls: { ...tls, isLocalCa: false } })
  assert.equal(exportsOf(files).length, 2)
})
