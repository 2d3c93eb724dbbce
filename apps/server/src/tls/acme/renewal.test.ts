import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { dayMs } from '@atoll/kit/certificates/x509'
import { createLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import type { CertificatePair } from '../check-certificate.ts'
import { createLocalCa, issueServerCertificate } from '../local-ca.ts'
import { openAcmeFiles } from './acme-files.ts'
import type { AcmeSettings } from './acme-settings.ts'
import { renewIfDue, startRenewal } from './renewal.ts'

const domain = 'atoll.test'
const settings: AcmeSettings = { directoryUrl: 'https://ca.test/dir', hostNames: [`*.${domain}`] }
const minuteMs = 60_000

/** Creates a CA whose certificates are valid for 90 days, and which refuses while `refusal` is set. */
async function setup(t: TestContext) {
  const dataDir = await mkdtemp(join(tmpdir(), 'atoll-renewal-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const files = openAcmeFiles(dataDir)
  const state = {
    nowMs: Date.now(),
    orders: 0,
    refusal: undefined as string | undefined,
    issue: (at: Date): CertificatePair => issueServerCertificate(createLocalCa(domain, at), at),
  }
  const clock = { now: () => new Date(state.nowMs) }
  let logged = ''
  const log = createLogger('info', { write: (line: string) => void (logged += line) })
  const order = async () => {
    state.orders += 1
    if (state.refusal !== undefined) throw new Error(state.refusal)
    return state.issue(clock.now())
  }
  const parts = { settings, domain, files, order, log, clock }
  const pass = (changed: Partial<AcmeSettings> = {}) =>
    renewIfDue({ ...parts, settings: { ...settings, ...changed } }, new AbortController().signal)
  return { state, parts, files, dataDir, pass, logged: () => logged }
}

test('a certificate is ordered once, and again when a third of its lifetime is left', async (t) => {
  const { state, pass, files } = await setup(t)
  await pass()
  await pass()
  const first = await files.readCertificate()
  state.nowMs += 55 * dayMs
  await pass()
  assert.equal(state.orders, 1)
  state.nowMs += 10 * dayMs
  await pass()
  await pass()
  assert.equal(state.orders, 2)
  assert.notEqual((await files.readCertificate())?.cert, first?.cert)
})

test('failed orders are repeated less and less often, and the old certificate stays', async (t) => {
  const { state, pass, files, logged } = await setup(t)
  await pass()
  const kept = await files.readCertificate()
  state.nowMs += 70 * dayMs
  state.refusal = 'rate limited'
  const ordersAt: number[] = []
  const begin = state.nowMs
  for (let minute = 0; minute < 24 * 60; minute += 1) {
    const before = state.orders
    await pass()
    if (state.orders > before) ordersAt.push((state.nowMs - begin) / minuteMs)
    state.nowMs += minuteMs
  }
  assert.deepEqual(ordersAt, [0, 1, 6, 21, 81, 261, 621, 981, 1341])
  assert.deepEqual(await files.readCertificate(), kept)
  assert.match(logged(), /"reason":"rate limited".*HTTPS keeps the old one/)
  state.refusal = undefined
  state.nowMs += 360 * minuteMs
  await pass()
  assert.notEqual((await files.readCertificate())?.cert, kept?.cert)
  assert.deepEqual((await files.readAttempts())?.failures, 0)
})

test('changed settings are tried at once, and so is a wait that a wrong clock has set', async (t) => {
  const { state, pass, files } = await setup(t)
  state.refusal = 'no such hook'
  await pass()
  await pass()
  assert.equal(state.orders, 1)
  await pass({ hook: '/etc/atoll/hook' })
  assert.equal(state.orders, 2)
  const attempts = (await files.readAttempts()) ?? assert.fail()
  await files.saveAttempts({ ...attempts, notBeforeMs: state.nowMs + 365 * dayMs })
  await pass({ hook: '/etc/atoll/hook' })
  assert.equal(state.orders, 3)
})

test('an attempt counts before it is made, so that a crash does not repeat it at once', async (t) => {
  const { state, parts, pass, files } = await setup(t)
  let seen: number | undefined
  const order = async () => {
    seen = (await files.readAttempts())?.failures
    throw new Error('refused')
  }
  await renewIfDue({ ...parts, order }, new AbortController().signal)
  assert.equal(seen, 1)
  await pass()
  assert.equal(state.orders, 0)
})

for (const [what, bad, reason] of [
  [
    'other names',
    (at: Date) => issueServerCertificate(createLocalCa('b.test', at), at),
    /not valid/,
  ],
  [
    'a key that does not fit',
    (at: Date) => ({ ...issueServerCertificate(createLocalCa(domain, at), at), key: 'x' }),
    /the key is not in PEM/,
  ],
] as const) {
  test(`a certificate with ${what} is not stored`, async (t) => {
    const { state, pass, files, logged } = await setup(t)
    state.issue = bad
    await pass()
    assert.equal(await files.readCertificate(), undefined)
    assert.match(logged(), reason)
  })
}

test('a certificate for other names than the settings say is replaced', async (t) => {
  const { state, pass } = await setup(t)
  await pass()
  await pass({ hostNames: ['api.atoll.test'] })
  assert.equal(state.orders, 1)
  await pass({ hostNames: ['api.other.test'] })
  assert.equal(state.orders, 2)
})

test('the key of an account is created once per CA, and a damaged one is neither used nor replaced', async (t) => {
  const { files, dataDir } = await setup(t)
  const key = await files.accountKey('https://a.test')
  assert.equal(await files.accountKey('https://a.test'), key)
  assert.notEqual(await files.accountKey('https://b.test'), key)
  const [name = ''] = await readdir(join(dataDir, 'tls'))
  const path = join(dataDir, 'tls', name)
  await writeFile(path, 'damaged')
  const results = await Promise.allSettled(
    ['https://a.test', 'https://b.test'].map((url) => files.accountKey(url)),
  )
  const failed = results.filter(({ status }) => status === 'rejected')
  assert.match(
    String(failed[0]?.status === 'rejected' && failed[0].reason),
    /is damaged; restore it/,
  )
  assert.equal(await readFile(path, 'utf8'), 'damaged')
})

test('a shutdown ends an order that takes long, and does not count as a failure', async (t) => {
  const { parts, files } = await setup(t)
  const began = Promise.withResolvers<void>()
  const renewal = startRenewal({
    ...parts,
    intervalMs: 5,
    order: (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
        began.resolve()
      }),
  })
  await began.promise
  await renewal.close()
  assert.deepEqual((await files.readAttempts())?.failures, 0)
})

test('the server orders by itself when the time has come', async (t) => {
  const { state, parts } = await setup(t)
  // Closed before the folder of its files is removed.
  await using renewal = new AsyncDisposableStack()
  renewal.adopt(startRenewal({ ...parts, intervalMs: 5 }), (started) => started.close())
  await waitFor('the first order', () => state.orders === 1)
  state.nowMs += 80 * dayMs
  await waitFor('the second order', () => state.orders === 2)
})
