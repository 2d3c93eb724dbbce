import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { objectEnv, objectSettingsOf } from './settings.ts'

const parse = (env: Record<string, string>) => objectSettingsOf(z.object(objectEnv).parse(env))

const whole = {
  ATOLL_S3_BUCKET: 'atoll',
  ATOLL_S3_ENDPOINT: 'http://127.0.0.1:7480',
  ATOLL_S3_ACCESS_KEY_ID: 'key',
  ATOLL_S3_SECRET_ACCESS_KEY: 'secret',
  ATOLL_S3_KEY_FILE: '/etc/atoll/object-keys',
}

test('without a bucket there is no object store', () => {
  const { ATOLL_S3_BUCKET: _bucket, ...rest } = whole
  assert.equal(parse({}), undefined)
  assert.equal(parse(rest), undefined)
})

test('a bucket needs an access key and a key file', () => {
  assert.equal(parse(whole)?.pathStyle, false)
  for (const name of [
    'ATOLL_S3_ACCESS_KEY_ID',
    'ATOLL_S3_SECRET_ACCESS_KEY',
    'ATOLL_S3_KEY_FILE',
  ] as const) {
    const { [name]: _left, ...rest } = whole
    assert.throws(() => parse(rest), { reason: 'configuration_refused', message: new RegExp(name) })
  }
})

test('addresses, prefixes and buckets are checked', () => {
  assert.throws(() => parse({ ...whole, ATOLL_S3_ENDPOINT: 'file:///etc' }))
  assert.throws(() => parse({ ...whole, ATOLL_S3_PREFIX: 'no-slash' }))
  for (const prefix of ['x y/', '../x/', './', 'x'])
    assert.throws(() => parse({ ...whole, ATOLL_S3_PREFIX: prefix }), prefix)
  assert.throws(() => parse({ ...whole, ATOLL_S3_BUCKET: 'A' }))
  assert.equal(parse({ ...whole, ATOLL_S3_PREFIX: 'a/b/' })?.prefix, 'a/b/')
})
