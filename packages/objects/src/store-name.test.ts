import assert from 'node:assert/strict'
import { test } from 'node:test'
import { earlierNameOfStore, nameOfStore } from './store-name.ts'

const place = { region: 'us-east-1', bucket: 'atoll', prefix: '' }
const name = (endpoint?: string) => nameOfStore({ ...place, endpoint })

test('all spellings of an endpoint name the same store', () => {
  const spellings = [
    ...['https://s3.example.com', 'https://s3.example.com/', 'HTTPS://S3.Example.com:443//'],
    ...['https://s3.example.com.', 'https://s3.example.com.:443/'],
  ]
  assert.equal(new Set(spellings.map(name)).size, 1)
  assert.equal(name('http://[::1]:9000/'), name('http://[0:0::1]:9000'))
})

test('other places have other names', () => {
  const names = [
    ...[name(), name('https://s3.example.com'), name('http://s3.example.com')],
    ...[name('https://s3.example.com:8443'), name('https://s3.example.com/path')],
    ...[nameOfStore({ ...place, endpoint: undefined, bucket: 'other' })],
    ...[nameOfStore({ ...place, endpoint: undefined, prefix: 'a/' })],
    ...[nameOfStore({ ...place, endpoint: undefined, region: 'eu-west-1' })],
  ]
  assert.equal(new Set(names).size, names.length)
})

test('the address of AWS may be given or left out', () => {
  assert.equal(name('https://s3.us-east-1.amazonaws.com/'), name())
  assert.equal(name('https://s3.amazonaws.com'), name())
  const other = { ...place, region: 'eu-west-1' }
  const given = nameOfStore({ ...other, endpoint: 'https://s3.eu-west-1.amazonaws.com' })
  assert.equal(given, nameOfStore({ ...other, endpoint: undefined }))
})

test('the usual spelling has the name that it always had', () => {
  for (const endpoint of [undefined, 'http://127.0.0.1:9000', 'https://s3.example.com']) {
    assert.equal(nameOfStore({ ...place, endpoint }), earlierNameOfStore({ ...place, endpoint }))
  }
})
