import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { linkFolder } from './link-folder.ts'

suite('links to the files of a folder', () => {
  let root = ''
  const at = (name: string) => join(root, name)

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'atoll-links-'))
    await mkdir(at('from/memory'), { recursive: true })
    await writeFile(at('from/disk.img'), 'disk')
    await writeFile(at('from/memory/pages.img'), 'pages')
  })
  afterEach(() => rm(root, { recursive: true }))

  test('the links keep what the folder had, whatever replaces or removes its files', async () => {
    assert.equal(await linkFolder(at('from'), at('to')), true)
    await writeFile(at('from/disk.next'), 'another disk')
    await rename(at('from/disk.next'), at('from/disk.img'))
    await rm(at('from/memory'), { recursive: true })
    assert.equal(await readFile(at('to/disk.img'), 'utf8'), 'disk')
    assert.equal(await readFile(at('to/memory/pages.img'), 'utf8'), 'pages')
  })

  test('unwanted and unfinished files are left out', async () => {
    await writeFile(at('from/disk-2.img'), 'half a copy')
    await writeFile(at('from/memory/pages.img.zst.next'), 'half')
    await linkFolder(at('from'), at('to'), (name) => name !== 'disk-2.img')
    const names = await readdir(at('to'), { recursive: true })
    assert.deepEqual(names.toSorted(), ['disk.img', 'memory', 'memory/pages.img'])
  })

  test('a folder that has gone leaves nothing', async () => {
    assert.equal(await linkFolder(at('gone'), at('to')), false)
    assert.deepEqual(await readdir(root), ['from'])
  })

  test('files that are replaced all the time are linked in one of their forms', async () => {
    let isOver = false
    const replace = async () => {
      while (!isOver) {
        await writeFile(at('from/memory/pages.img.zst'), 'packed')
        await rm(at('from/memory/pages.img'))
        await writeFile(at('from/memory/pages.img.next'), 'pages')
        await rename(at('from/memory/pages.img.next'), at('from/memory/pages.img'))
        await rm(at('from/memory/pages.img.zst'))
        await new Promise(setImmediate)
      }
    }
    const replacing = replace()
    try {
      for (let round = 0; round < 50; round += 1) {
        const isLinked = await linkFolder(at('from'), at(`to-${round}`)).catch(() => 'busy')
        if (isLinked === 'busy') continue
        const names = await readdir(at(`to-${round}/memory`))
        assert.ok(names.length > 0, 'a link to the pages is missing')
      }
    } finally {
      isOver = true
      await replacing
    }
  })
})
