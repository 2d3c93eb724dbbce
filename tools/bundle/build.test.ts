import assert from 'node:assert/strict'
import {
  appendFile,
  cp,
  mkdir,
  mkdtempDisposable,
  readdir,
  rm,
  symlink,
  utimes,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { bundlePrograms } from './build.ts'
import { atollProgram, bundleFolder, bundleIsCurrent, manifestName } from './programs.mjs'

const repository = join(import.meta.dirname, '../..')

/** Makes a clone whose packages are links to those of this clone. */
async function cloneSources() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'atoll-bundle-'))
  const root = folder.path
  const isOwn = (path: string) => !path.includes('/node_modules')
  for (const name of ['apps', 'packages', 'tools', 'package.json', 'package-lock.json']) {
    await cp(join(repository, name), join(root, name), { recursive: true, filter: isOwn })
  }
  await linkPackages(root, 'node_modules')
  await linkPackages(root, 'apps/envd/node_modules')
  return { root, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

async function linkPackages(root: string, folder: string): Promise<void> {
  const entries = await readdir(join(repository, folder)).catch(() => [])
  await mkdir(join(root, folder))
  for (const name of entries) {
    if (name === '.cache') continue
    const isWorkspace = name === '@atoll'
    if (!isWorkspace) await symlink(join(repository, folder, name), join(root, folder, name))
    else
      await cp(join(repository, folder, name), join(root, folder, name), {
        recursive: true,
        verbatimSymlinks: true,
      })
  }
}

suite('the bundle of a clone', () => {
  let clone: Awaited<ReturnType<typeof cloneSources>>

  before(async () => {
    clone = await cloneSources()
    assert.equal(bundleIsCurrent(clone.root), false)
    await bundlePrograms(clone.root)
  })
  after(() => clone[Symbol.asyncDispose]())

  /** Copies the clone with its bundle. */
  async function copyClone() {
    const folder = await mkdtempDisposable(join(tmpdir(), 'atoll-bundle-copy-'))
    const root = join(folder.path, 'copy')
    await run('cp', ['--archive', clone.root, root])
    return { root, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
  }

  test('runs the command line, also in a copy of the clone', async () => {
    await using copy = await copyClone()
    const page = await run(process.execPath, [sourceOf(clone.root), 'sandbox', '--help'])
    for (const { root } of [clone, copy]) {
      assert.equal(atollProgram(root), join(root, bundleFolder, 'atoll.mjs'))
      assert.equal(await run(process.execPath, [atollProgram(root), 'sandbox', '--help']), page)
    }
  })

  test('is not used by another clone that shares its packages', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-bundle-linked-'))
    for (const name of await readdir(clone.root))
      await symlink(join(clone.root, name), join(folder.path, name))
    assert.equal(atollProgram(folder.path), sourceOf(folder.path))
  })

  test('is outdated by an older source, a missing one, and a damaged list of sources', async () => {
    const changes = [
      (root: string) => utimes(sourceOf(root), 1, 1),
      (root: string) => rm(join(root, 'apps/egress/src/main.ts')),
      (root: string) => appendFile(join(root, bundleFolder, manifestName), 'damaged'),
    ]
    for (const change of changes) {
      await using copy = await copyClone()
      assert.equal(bundleIsCurrent(copy.root), true)
      await change(copy.root)
      assert.equal(bundleIsCurrent(copy.root), false)
      assert.equal(atollProgram(copy.root), sourceOf(copy.root))
    }
  })

  test('is replaced by the sources in a clone that cannot be written to', async () => {
    await using copy = await copyClone()
    const { root } = copy
    const script =
      'mount --bind -o ro "$1" "$1" && exec "$2" "$1/tools/prepare.mjs" --program --packages'
    const inReadOnlyClone = ['--mount', 'sh', '-c', script, 'sh', root, process.execPath]
    const print = () => run('unshare', inReadOnlyClone)
    assert.equal(await print(), `${join(root, bundleFolder, 'atoll.mjs')}\n`)
    await utimes(sourceOf(root), 1, 1)
    assert.equal(await print(), `${sourceOf(root)}\n`)
  })

  test('is made again with the changes of a source, and keeps its files for running servers', async () => {
    const { root } = clone
    const former = await readdir(join(root, bundleFolder))
    await appendFile(sourceOf(root), "process.stdout.write('changed')\n")
    assert.equal(atollProgram(root), sourceOf(root))
    await bundlePrograms(root)
    assert.match(await run(process.execPath, [atollProgram(root), '--help']), /changed/)
    const current = await readdir(join(root, bundleFolder))
    assert.deepEqual(
      former.filter((name) => !current.includes(name)),
      [],
    )
  })
})

function sourceOf(root: string): string {
  return join(root, 'apps/cli/src/main.ts')
}
