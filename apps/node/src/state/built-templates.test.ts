import assert from 'node:assert/strict'
import { mkdtempDisposable, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBuiltTemplates } from './built-templates.ts'

const template = {
  templateId: 't1',
  layer: 's1',
  setup: { user: 'user', workdir: '/srv', envVars: { A: 'b' }, startCommand: 'serve' },
}

test('a template is known until it is removed, also after a restart', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-templates-'))
  const templates = await openBuiltTemplates(folder.path)
  await templates.add(template)
  const again = await openBuiltTemplates(folder.path)
  assert.deepEqual(again.find('t1'), template)
  await again.remove('t1')
  await again.remove('t1')
  assert.equal(again.find('t1'), undefined)
  assert.deepEqual((await openBuiltTemplates(folder.path)).list(), [])
})

test('a template whose record cannot be read is kept and refused; a half-written file goes', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-templates-'))
  await (await openBuiltTemplates(folder.path)).add(template)
  await writeFile(join(folder.path, 't2.json'), '{"templateId":')
  await writeFile(join(folder.path, 't1.json.1234.tmp'), '')
  const templates = await openBuiltTemplates(folder.path)
  assert.deepEqual(templates.list(), [template])
  assert.equal(templates.find('t2'), undefined)
  assert.throws(() => templates.findReadable('t2'), { reason: 'record_unreadable' })
  assert.deepEqual(
    templates.listQuarantined().map(({ path }) => path),
    [join(folder.path, 't2.json')],
  )
  assert.deepEqual(await readdir(folder.path), ['t1.json', 't2.json'])
})
