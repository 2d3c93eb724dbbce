import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asksForPrimary, describeTarget, splitHosts } from './hosts.ts'

test('a URL with several hosts is one URL for each host', () => {
  assert.deepEqual(splitHosts('postgres://a:p%2Cq,r@db1:5432,db2:5433,[::1]:5434/atoll?ssl=true'), [
    'postgres://a:p%2Cq,r@db1:5432/atoll?ssl=true',
    'postgres://a:p%2Cq,r@db2:5433/atoll?ssl=true',
    'postgres://a:p%2Cq,r@[::1]:5434/atoll?ssl=true',
  ])
  assert.deepEqual(splitHosts('postgresql://db/atoll'), ['postgresql://db/atoll'])
})

for (const wrong of ['mysql://db/atoll', 'postgres://db1,,db2/a', 'postgres://db1:x,db2/a', '']) {
  test(`not a URL of PostgreSQL: ${wrong}`, () => assert.equal(splitHosts(wrong), undefined))
}

test('messages name the hosts and the database, and no credentials', () => {
  const url = 'postgres://user:secret@db1:5432,db2:5433/atoll?sslmode=require'
  assert.equal(describeTarget(url), 'db1:5432,db2:5433/atoll')
})

test('only a server that takes writes can be asked for', () => {
  const ask = (wanted: string) => asksForPrimary(`postgres://a,b/c?target_session_attrs=${wanted}`)
  assert.deepEqual(['read-write', 'primary'].map(ask), [true, true])
  assert.deepEqual(['any', 'standby', 'read-only', 'prefer-standby', ''].map(ask), [
    ...[false, false, false, false, false],
  ])
  assert.equal(asksForPrimary('postgres://a,b/c'), true)
})
