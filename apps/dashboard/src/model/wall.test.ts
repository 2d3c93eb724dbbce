import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maxTiles, parseWall, wallPath } from './wall.ts'

const parse = (path: string) => parseWall(new URL(path, 'http://x').searchParams)

test('a view of the wall survives its way through the URL', () => {
  for (const view of [
    { ids: [], show: 'lines', focus: undefined },
    { ids: ['ia', 'ib'], show: 'terminals', focus: 'ib' },
  ] as const) {
    assert.deepEqual(parse(wallPath(view)), view)
  }
  assert.equal(wallPath({}), '/wall')
})

test('the wall takes each sandbox once, no more than it can show, and nothing that is no ID', () => {
  const many = Array.from({ length: 80 }, (_, index) => `i${index}`)
  assert.equal(parse(`/wall?ids=${many.join(',')}`).ids.length, maxTiles)
  assert.equal(parse(wallPath({ ids: many })).ids.length, maxTiles)
  assert.deepEqual(parse('/wall?ids=ia,ia,../x,,<b>,ib&focus=a/b').ids, ['ia', 'ib'])
  assert.equal(parse('/wall?focus=a/b').focus, undefined)
})
