import assert from 'node:assert/strict'
import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { ensureBaseTemplate } from './base.ts'
import { baseRecipe, recipeHash } from './recipe.ts'

/** Layers are named after their content, so tests can share one build with this machine's installation. */
const layersDir = '/var/lib/atoll/layers'

const enterReadOnly = `set -eu
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
mount -t proc proc "$0/proc"
exec chroot --userspec=1000:1000 "$0" env -i HOME=/ PATH=/usr/local/bin:/usr/bin:/bin "$@"`

test('the base template has what it promises', async (t) => {
  const { layerDir, layerId } = await ensureBaseTemplate({ layersDir, progress: () => {} })
  assert.match(layerId, /^sha256-[0-9a-f]{64}$/)

  const inside = (...command: string[]) =>
    run('unshare', ['--mount', 'sh', '-c', enterReadOnly, layerDir, ...command])

  await t.test('every tool runs', async () => {
    const tools = ['bash', 'ps', 'ip', 'curl', 'git', 'sudo', 'python3', 'python', 'tput', 'setsid']
    const builders = ['pip', 'gcc', 'g++', 'make', 'wget', 'jq', 'rg', 'xz']
    for (const tool of [...tools, ...builders]) {
      await inside(tool, ['ip', 'tput'].includes(tool) ? '-V' : '--version')
    }
    await inside('unzip', '-v')
    await inside('python3', '-m', 'venv', '--help')
    assert.equal((await inside('node', '--version')).trim(), process.version)
    assert.equal((await inside('npm', '--version')).trim(), baseRecipe.npm)
    assert.equal((await inside('npx', '--version')).trim(), baseRecipe.npm)
  })

  await t.test('the user has its ids, home, shell and sudo without a password', async () => {
    const passwd = await readFile(join(layerDir, 'etc/passwd'), 'utf8')
    assert.match(passwd, /^user:x:1000:1000::\/home\/user:\/bin\/bash$/m)
    assert.match(await readFile(join(layerDir, 'etc/group'), 'utf8'), /^sudo:x:\d+:user$/m)
    const rule = join(layerDir, 'etc/sudoers.d/user')
    assert.match(await readFile(rule, 'utf8'), /NOPASSWD:ALL/)
    const home = await stat(join(layerDir, 'home/user'))
    assert.deepEqual([(await stat(rule)).mode & 0o777, home.uid, home.gid], [0o440, 1000, 1000])
    const files = await readdir(join(layerDir, 'home/user'))
    assert.deepEqual(files.toSorted(), ['.bash_logout', '.bashrc', '.profile'])
  })

  await t.test('pip may install outside a virtual environment', async () => {
    const libraries = (await readdir(join(layerDir, 'usr/lib'))).filter((name) =>
      name.startsWith('python3'),
    )
    assert.notEqual(libraries.length, 0)
    for (const library of libraries) {
      const files = await readdir(join(layerDir, 'usr/lib', library))
      assert.equal(files.includes('EXTERNALLY-MANAGED'), false)
    }
    assert.match(await inside('sh', '-c', 'ls /usr/include/python3*/Python.h'), /Python\.h/)
  })

  await t.test('nothing of this machine is in it', async () => {
    for (const name of ['machine-id', 'hostname', 'resolv.conf']) {
      assert.equal(await readFile(join(layerDir, 'etc', name), 'utf8'), '')
    }
    for (const folder of ['tmp', 'var/log', 'var/lib/apt/lists']) {
      assert.deepEqual(await readdir(join(layerDir, folder)), [])
    }
    const local = await readdir(join(layerDir, 'usr/local'), { recursive: true })
    const traces = local.filter((path) => /(^|\/)(\.?npmrc|\.package-lock\.json)$/.test(path))
    assert.deepEqual(traces, [])
  })
})

test('a build that is called off leaves nothing behind', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-layers-'))
  try {
    const stop = new AbortController()
    const build = ensureBaseTemplate({
      layersDir: dir,
      signal: stop.signal,
      progress: (_label, fraction) => {
        if (fraction > 0.01) stop.abort()
      },
    })
    await assert.rejects(build, { name: 'AbortError' })
    assert.deepEqual(await readdir(dir), ['.lock'])
  } finally {
    await rm(dir, { recursive: true })
  }
})

test('recipes differ by their packages, Node.js and architecture', () => {
  const hashes = [
    recipeHash(baseRecipe, '24.0.0', 'x64'),
    recipeHash({ ...baseRecipe, packages: ['bash'] }, '24.0.0', 'x64'),
    recipeHash(baseRecipe, '24.0.1', 'x64'),
    recipeHash(baseRecipe, '24.0.0', 'arm64'),
  ]
  assert.equal(new Set(hashes).size, hashes.length)
})
