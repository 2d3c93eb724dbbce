import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { replaceAuthority } from '../../domain/trust/ca-bundle.ts'
import { authority, otherAuthority } from '../../testing/certificates.ts'
import { caInstaller } from './install-ca.ts'

const others = '# \xe9\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
const certificate = 'usr/local/share/ca-certificates/atoll-egress.crt'
const bundle = 'etc/ssl/certs/ca-certificates.crt'
const fedora = 'etc/pki/tls/certs/ca-bundle.crt'
const link = 'etc/ssl/certs/2d824785.0'

const withOurs = (text: string, caBundle = authority) =>
  replaceAuthority(text, { caBundle, old: '' })

async function setup(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'atoll-trust-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  const at = (path: string) => join(root, path)
  return {
    at,
    install: caInstaller(root),
    read: (path: string) => readFile(at(path), 'latin1'),
    async put(path: string, text: string) {
      await mkdir(dirname(at(path)), { recursive: true })
      await writeFile(at(path), text, 'latin1')
    },
    async link(target: string, path: string) {
      await mkdir(dirname(at(path)), { recursive: true })
      await symlink(target, at(path))
    },
  }
}

test('the CA is installed where programs look, and other certificates stay', async (t) => {
  const { install, put, read, at } = await setup(t)
  await put(bundle, others)
  assert.deepEqual(await install(authority), {
    certificate: at(certificate),
    bundle: at(bundle),
    problems: [],
  })
  assert.equal(await read(certificate), authority)
  assert.equal(await read(bundle), withOurs(others))
  assert.equal(await readlink(at(link)), at(certificate))
  const modes = [certificate, bundle].map(async (path) => (await stat(at(path))).mode & 0o777)
  assert.deepEqual(await Promise.all(modes), [0o644, 0o644])
  assert.deepEqual((await readdir(at('etc/ssl/certs'))).toSorted(), [
    '2d824785.0',
    'ca-certificates.crt',
  ])
  await assert.rejects(stat(at('etc/pki')), { code: 'ENOENT' })
})

test('a new CA replaces the old one, and the bundle does not grow', async (t) => {
  const { install, put, read, at } = await setup(t)
  await put(bundle, others + authority) // update-ca-certificates writes no markers
  await put(certificate, authority)
  for (let round = 0; round < 3; round += 1) await install(otherAuthority)
  assert.equal(await read(bundle), withOurs(others, otherAuthority))
  assert.equal(await read(link), otherAuthority)
  const { ino } = await stat(at(bundle))
  await install(otherAuthority)
  assert.equal((await stat(at(bundle))).ino, ino)
})

test('a system without a bundle gets one, which is not reported as complete', async (t) => {
  const { install, read, at } = await setup(t)
  const installed = await install(authority)
  assert.deepEqual(installed, { certificate: at(certificate), bundle: undefined, problems: [] })
  assert.equal(await read(bundle), withOurs(''))
})

test('symlinks of a distribution are followed and kept', async (t) => {
  const { install, put, link: makeLink, read, at } = await setup(t)
  const extracted = 'etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem'
  await put(extracted, others)
  await makeLink(at(extracted), fedora)
  await makeLink('../pki/tls/certs', 'etc/ssl/certs')
  const installed = await install(authority)
  assert.deepEqual([installed.bundle, installed.problems], [at(fedora), []])
  assert.equal(await read(extracted), withOurs(others))
  assert.equal(await readlink(at(fedora)), at(extracted))
  assert.equal(await read('etc/pki/tls/certs/2d824785.0'), authority)
})

test('a symlink to a folder that is not for certificates is not followed', async (t) => {
  const { install, put, link: makeLink, read, at } = await setup(t)
  await put('root/secret', others)
  await makeLink(at('root/secret'), bundle)
  await makeLink(at('etc/../root/secret'), fedora)
  const installed = await install(authority)
  assert.deepEqual([installed.certificate, installed.bundle], [at(certificate), undefined])
  assert.equal(installed.problems.length, 2)
  assert.equal(await read('root/secret'), others)
  await rm(at(bundle))
  await symlink(at('etc/nothing'), at(bundle))
  assert.match((await install(authority)).problems.join(), /broken symlink/)
  await assert.rejects(stat(at('etc/nothing')), { code: 'ENOENT' })
})

test("a symlink at the certificate's path is replaced, not followed", async (t) => {
  const { install, put, link: makeLink, read, at } = await setup(t)
  await put('root/secret', 'secret')
  await makeLink(at('root/secret'), certificate)
  await makeLink(at('root/secret'), link)
  assert.deepEqual((await install(authority)).problems, [])
  assert.equal(await read('root/secret'), 'secret')
  assert.ok((await lstat(at(certificate))).isFile())
  assert.equal(await read(link), authority)
})

test('pipes, folders, devices and huge files do not block', async (t) => {
  const { install, at } = await setup(t)
  await mkdir(at('etc/ssl/certs'), { recursive: true })
  await mkdir(dirname(at(certificate)), { recursive: true })
  const makers: [string, string[]][] = [
    ['mkfifo', []],
    ['mkdir', []],
    ['mknod', ['c', '1', '5']], // same device as /dev/zero
    ['truncate', ['--size=1T']],
  ]
  for (const [program, args] of makers) {
    await rm(at(bundle), { recursive: true, force: true })
    const options = args.filter((arg) => arg.startsWith('--'))
    const rest = args.filter((arg) => !arg.startsWith('--'))
    execFileSync(program, [...options, at(bundle), ...rest])
    const { certificate: written, bundle: fullBundle, problems } = await install(authority)
    assert.deepEqual(
      [written, fullBundle, problems.length],
      [at(certificate), undefined, 1],
      program,
    )
  }
  await rm(at(certificate))
  execFileSync('mkfifo', [at(certificate), at('etc/ssl/certs/pipe')])
  assert.equal((await install(authority)).certificate, at(certificate))
})

test('the bundle is written even if the certificate cannot be', async (t) => {
  const { install, put, read, at } = await setup(t)
  await put('usr/local/share', 'not a folder')
  await put(bundle, others)
  const installed = await install(authority)
  assert.deepEqual([installed.certificate, installed.bundle], [undefined, at(bundle)])
  assert.equal(installed.problems.length, 1)
  assert.equal(await read(bundle), withOurs(others))
})

test("the link name is OpenSSL's hash of the CA subject", (t) => {
  assert.equal(new X509Certificate(authority).subject, 'CN=atoll sandbox egress')
  const openssl = ['x509', '-noout', '-hash']
  try {
    const hash = execFileSync('openssl', openssl, { input: authority, encoding: 'utf8' })
    assert.equal(`etc/ssl/certs/${hash.trim()}.0`, link)
  } catch (thrown) {
    if (!(thrown instanceof Error) || !('code' in thrown) || thrown.code !== 'ENOENT') throw thrown
    t.skip('there is no openssl')
  }
})
