/** Encryption at rest: the data directory shows no private value, and keys are replaced while sandboxes are used. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempDisposable, readFile, rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { createAuthority, issueCertificate } from '@atoll/egress/authority'
import { ensureKeyFile, keyFileOf } from '@atoll/kit/encryption/key-file'
import { run, tryRun } from '@atoll/kit/run'
import { toInstallation } from '@atoll/node/domain/host/installation'
import { createRecordStore } from '@atoll/node/state/records'
import { startMicrosocks } from '@atoll/node/testing/microsocks'
import { Sandbox, Secret } from 'e2b'
import type { SandboxOpts } from 'e2b'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { openOutside } from '../network/outside.ts'
import type { Outside } from '../network/outside.ts'
import { shell } from '../shell.ts'

suite('encryption at rest on gvisor', { timeout: 1_200_000, concurrency: 1 }, () => {
  const resources = new AsyncDisposableStack()
  const teamSecret = 'plain-text-of-the-secret'
  const headerValue = 'plain-text-of-the-header'
  const password = 'plain-text-of-the-password'
  const rules = {
    'api.example': [
      { transform: { headers: { 'X-Team': `v ${Secret.fill('api-key')}`, 'X-Own': headerValue } } },
    ],
  }
  let installation: Installation
  let outside: Outside
  let proxy: { address: string; username: string; password: string }
  let withRules: Sandbox
  let withProxy: Sandbox
  let paused: Sandbox
  let snapshotId: string

  before(async () => {
    const folder = resources.use(await mkdtempDisposable(join(tmpdir(), 'atoll-authority-')))
    const authority = createAuthority()
    const caFile = join(folder.path, 'ca.pem')
    await writeFile(caFile, authority.certificate)
    outside = resources.use(await openOutside('11.22.41', []))
    const { publicAddress } = outside
    await outside.serveNames({ 'api.example': publicAddress })
    await outside.start(join(import.meta.dirname, '../network/header-server.ts'), {
      trusted: issueCertificate(authority, 'api.example'),
      untrusted: issueCertificate(createAuthority(), 'api.example'),
    })
    proxy = { address: `${publicAddress}:1080`, username: 'me', password }
    resources.use(
      await startMicrosocks(outside.namespace, { port: 1080, username: 'me', password }),
    )
    installation = resources.use(
      await install({
        ATOLL_RUNTIME: 'gvisor',
        ATOLL_NAMESERVERS: publicAddress,
        ATOLL_EGRESS_CA_FILE: caFile,
        ATOLL_ADMIN_TOKEN: 'an-admin-token-of-the-test',
        ATOLL_BASE_MEMORY_MB: '256',
        ATOLL_BASE_DISK_SIZE_MB: '256',
      }),
    )
    await Secret.create('api-key', teamSecret, installation.connection)
    withRules = await createSandbox({ network: { rules } })
    withProxy = await createSandbox({ network: { egressProxy: proxy } })
    paused = await createSandbox({ network: { rules, egressProxy: proxy } })
    snapshotId = (await withRules.createSnapshot()).snapshotId
    await paused.pause()
  })
  after(() => resources.disposeAsync())

  const createSandbox = (options: SandboxOpts = {}, template = 'base') =>
    Sandbox.create(template, { ...installation.connection, timeoutMs: 1_800_000, ...options })

  /** Returns a hash of the headers that the server got, or the output of curl. The values would stay in logs and memory. */
  async function sentHeaders(from: Sandbox) {
    const command = 'curl -sS --max-time 120 https://api.example:8443/digest'
    const { code, stdout, stderr } = await shell(from, command)
    return code === 0 ? stdout : `failed with ${code}: ${stderr}`
  }
  const expected = createHash('sha256').update(`v ${teamSecret}\n${headerValue}`).digest('hex')

  async function usesProxy(from: Sandbox): Promise<boolean> {
    const url = `http://${outside.publicAddress}:8080/`
    return (await shell(from, `curl -sS --max-time 120 ${url}`)).code === 0
  }

  /** Names of files that hold one of the texts, also in disk images, memory and the write-ahead log of the store. */
  async function filesWith(texts: readonly string[]): Promise<string[]> {
    const patterns = texts.flatMap((text) => ['-e', text])
    const args = ['-rlaF', '--devices=skip', ...patterns, installation.dataDir]
    const { code, stdout, stderr } = await tryRun('grep', args)
    // Files that vanish during the search, such as records being replaced, are named on stderr.
    assert.ok(code === 0 || code === 1 || /No such file/.test(stderr), stderr)
    return stdout.split('\n').filter((line) => line !== '')
  }

  /** Part of the private key of each sandbox with header rules. */
  async function privateKeyParts(): Promise<string[]> {
    const { dataDir } = installation
    const keys = await ensureKeyFile(keyFileOf(dataDir, undefined))
    const entries = await createRecordStore(toInstallation(dataDir), keys).list()
    return entries.flatMap(({ record }) => {
      const lines = record?.owner?.authority?.key.split('\n') ?? []
      return lines.filter((line) => line !== '' && !line.startsWith('-')).slice(0, 1)
    })
  }

  async function checkEverythingWorks(): Promise<void> {
    assert.equal(await sentHeaders(withRules), expected)
    assert.ok(await usesProxy(withProxy))
    await paused.connect({ timeoutMs: 1_800_000 })
    await paused.updateNetwork({ rules })
    assert.equal(await sentHeaders(paused), expected)
    await paused.updateNetwork({ rules, egressProxy: proxy })
    await paused.pause()
    const copy = await createSandbox({ network: { rules } }, snapshotId)
    assert.equal(await sentHeaders(copy), expected)
    await copy.kill()
  }

  test('no private value is in the data directory', async () => {
    assert.equal(await sentHeaders(withRules), expected)
    assert.ok(await usesProxy(withProxy))
    const keys = await privateKeyParts()
    assert.equal(keys.length, 2)
    assert.deepEqual(await filesWith([teamSecret, headerValue, password, ...keys]), [])
    assert.notDeepEqual(await filesWith(['api-key']), [], 'the search finds what is there')
  })

  test('the key is replaced while sandboxes are used, paused and created', async () => {
    const { currentId } = await ensureKeyFile(keyFileOf(installation.dataDir, undefined))
    let isDone = false
    const failures: unknown[] = []
    const traffic = (async () => {
      while (!isDone) {
        const sent = await sentHeaders(withRules)
        if (sent !== expected) failures.push(sent)
        const made = await createSandbox({ network: { rules } })
        await made.pause()
        await made.connect()
        await made.kill()
      }
    })()
    for (let round = 0; round < 3; round += 1) {
      await run(atoll, ['encryption', 'rotate'], { env: installation.env })
    }
    isDone = true
    await traffic
    assert.deepEqual(failures, [])
    const old = await filesWith([`atoll.sealed.v1.${currentId}.`])
    assert.deepEqual(
      old.filter((path) => path.endsWith('.json')),
      [],
    )
    const { keyIds } = await ensureKeyFile(keyFileOf(installation.dataDir, undefined))
    assert.equal(keyIds.length, 1)
    assert.notEqual(keyIds[0], currentId)
    await checkEverythingWorks()
  })

  test('everything works after a crash, and still nothing is in plain text', async () => {
    await installation.crash()
    await installation.start()
    withRules = await Sandbox.connect(withRules.sandboxId, installation.connection)
    await checkEverythingWorks()
    const keys = await privateKeyParts()
    assert.deepEqual(await filesWith([teamSecret, headerValue, password, ...keys]), [])
  })

  test('a wrong or missing key file is refused, and nothing is lost', async () => {
    const { path } = keyFileOf(installation.dataDir, undefined)
    assert.equal(await installation.interrupt(), 0)
    await rename(path, `${path}.kept`)
    await assert.rejects(installation.start(), /is encrypted with the key/)
    await writeFile(path, `${'7'.repeat(64)}\n`, { mode: 0o600 })
    await assert.rejects(installation.start(), /is encrypted with the key/)
    assert.equal(await readFile(path, 'utf8'), `${'7'.repeat(64)}\n`)
    await rename(`${path}.kept`, path)
    await installation.start()
    await checkEverythingWorks()
  })
})
