import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newKey } from './key-ring.ts'
import { isSealed, keyIdOf, openText, sealText, toEncryptionKey } from './sealed-text.ts'

const key = newKey()

for (const plain of ['', 'x', 'päßwörd 🔑', 'a'.repeat(100_000)]) {
  test(`a text of ${plain.length} characters opens as it was sealed, and is not readable before`, () => {
    const sealed = sealText(key, plain, 'secret:1')
    assert.ok(isSealed(sealed))
    assert.equal(keyIdOf(sealed), key.id)
    assert.ok(plain.length < 5 || !sealed.includes(plain))
    assert.equal(openText(key, sealed, 'secret:1'), plain)
  })
}

test('the same text is sealed differently each time', () => {
  assert.notEqual(sealText(key, 'same', 'a'), sealText(key, 'same', 'a'))
})

test('a sealed text opens neither for another record nor with another key', () => {
  const sealed = sealText(key, 'mine', 'secret:1')
  assert.equal(openText(key, sealed, 'secret:2'), undefined)
  assert.equal(openText(newKey(), sealed, 'secret:1'), undefined)
})

test('a change of any character is noticed', () => {
  const sealed = sealText(key, 'mine', 'a')
  const start = sealed.lastIndexOf('.') + 1
  for (let at = start; at < sealed.length - 1; at += 1) {
    const other = sealed[at] === 'A' ? 'B' : 'A'
    const changed = `${sealed.slice(0, at)}${other}${sealed.slice(at + 1)}`
    assert.equal(openText(key, changed, 'a'), undefined, String(at))
  }
  for (const short of ['', 'AA', sealed.slice(start, -4)]) {
    assert.equal(openText(key, `${sealed.slice(0, start)}${short}`, 'a'), undefined)
  }
})

test('a key has the same ID wherever it is written', () => {
  assert.equal(toEncryptionKey(Buffer.alloc(32, 7)).id, toEncryptionKey(Buffer.alloc(32, 7)).id)
  assert.notEqual(toEncryptionKey(Buffer.alloc(32, 7)).id, toEncryptionKey(Buffer.alloc(32, 8)).id)
})
