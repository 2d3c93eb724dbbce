import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mediaTypeOf } from './media-type.ts'
import { sniffMediaType } from './sniff-media-type.ts'

const names: [string, string | undefined][] = [
  ['/a/b.json', 'application/json'],
  ['/a/B.PNG', 'image/png'],
  ['/a/x.tar.gz', 'application/gzip'],
  ['/a/page.htm', 'text/html; charset=utf-8'],
  ['/a/notes.md', 'text/markdown; charset=utf-8'],
  ['/a.html/plain', undefined],
  ['/a/.html', undefined],
  ['/a/odd.constructor', undefined],
]

for (const [name, type] of names) {
  test(`${name} is ${type}`, () => assert.equal(mediaTypeOf(name), type))
}

const contents: [string, string][] = [
  ['', 'text/plain; charset=utf-8'],
  ['plain words, ünd more', 'text/plain; charset=utf-8'],
  ['esc \u001b[1m too', 'text/plain; charset=utf-8'],
  ['nul \0', 'application/octet-stream'],
  ['  \n<!DOCTYPE html><p>', 'text/html; charset=utf-8'],
  ['<b>bold', 'text/html; charset=utf-8'],
  ['<bold>', 'text/plain; charset=utf-8'],
  ['<?xml version="1.0"?>', 'text/xml; charset=utf-8'],
  ['%PDF-1.7', 'application/pdf'],
  ['\u0089PNG\r\n\u001a\n', 'image/png'],
  ['RIFF1234WEBPVP8 ', 'image/webp'],
  ['\u001f\u008b\u0008', 'application/x-gzip'],
  ['PK\u0003\u0004', 'application/zip'],
  ['\0asm\u0001', 'application/wasm'],
]

for (const [content, type] of contents) {
  test(`${JSON.stringify(content)} looks like ${type}`, () => {
    assert.equal(sniffMediaType(Buffer.from(content, 'latin1')), type)
  })
}

test('only the first bytes of a file are sniffed', () => {
  assert.equal(sniffMediaType(Buffer.from(`${'x'.repeat(512)}\0`)), 'text/plain; charset=utf-8')
})
