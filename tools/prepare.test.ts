import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { tryRun } from '@atoll/kit/run'
import { explainNpmFailure, linkPinnedNode } from './npm-packages.mjs'

async function prepareOn(osRelease: string, prefix: readonly string[] = []) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-prepare-'))
  try {
    const osReleaseFile = join(dir, 'os-release')
    await writeFile(osReleaseFile, osRelease)
    const script = join(import.meta.dirname, 'prepare.mjs')
    const [command, ...args] = [...prefix, process.execPath, script]
    return await tryRun(command, args, {
      env: {
        ...process.env,
        ATOLL_PREPARE_PATH: dir,
        ATOLL_PREPARE_OS_RELEASE: osReleaseFile,
      },
    })
  } finally {
    await rm(dir, { recursive: true })
  }
}

test('on a system other than Debian the missing packages are named and nothing is installed', async () => {
  const { code, stderr } = await prepareOn('ID=fedora\nPRETTY_NAME="Fedora Linux 43"\n')
  assert.equal(code, 1)
  assert.match(stderr, /this is Fedora Linux 43[^]*runsc[^]*nftables[^]*mmdebstrap/)
})

test('a user without root gets the command for root', async () => {
  const asNobody = ['unshare', '--user'] // owns the files, but is not root
  const { code, stderr } = await prepareOn('ID=debian\n', asNobody)
  assert.equal(code, 1)
  assert.match(stderr, /only root can install them[^]*Run: {2}sudo \S+ \S+prepare\.mjs/)
})

test('a complete set-up prints nothing', async () => {
  const prepare = () =>
    tryRun(process.execPath, [join(import.meta.dirname, 'prepare.mjs'), '--packages'])
  await prepare() // bundles again if a source was edited since the tests were started
  const { code, stdout, stderr } = await prepare()
  assert.deepEqual([code, stdout, stderr], [0, '', ''])
})

test('an unreachable registry is distinguished from other failures of npm', () => {
  for (const word of [
    'code EAI_AGAIN',
    'code SELF_SIGNED_CERT_IN_CHAIN',
    'Exit handler never called!',
  ]) {
    assert.match(explainNpmFailure(`npm error ${word}`, 1), /registry cannot be reached/)
  }
  assert.doesNotMatch(explainNpmFailure('npm warn EBADENGINE x\nnpm error', 1), /EBADENGINE/)
  assert.match(explainNpmFailure('npm error code EUSAGE', 1), /npm install failed \(exit 1\)/)
})

test('a missing or broken link to the pinned Node.js is repaired', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-prepare-'))
  try {
    assert.throws(() => linkPinnedNode(dir), /no pinned Node\.js/)
    const program = `node-linux-${process.arch}/bin`
    await mkdir(join(dir, 'node_modules', program), { recursive: true })
    await writeFile(join(dir, 'node_modules', program, 'node'), '')
    await mkdir(join(dir, 'node_modules/.bin'))
    const link = join(dir, 'node_modules/.bin/node')
    await symlink('../elsewhere/bin/node', link)
    linkPinnedNode(dir)
    assert.equal(await readlink(link), `../${program}/node`)
  } finally {
    await rm(dir, { recursive: true })
  }
})
