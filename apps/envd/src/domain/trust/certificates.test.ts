import assert from 'node:assert/strict'
import { test } from 'node:test'
import { authority, otherAuthority } from '../../testing/certificates.ts'
import { parseCertificates } from './certificates.ts'

test('certificates are kept and the text around them is dropped', () => {
  assert.equal(parseCertificates(authority), authority)
  const wordy = `subject=x\r\n${authority.replaceAll('\n', '\r\n')}# two\n\n${otherAuthority.trim()}`
  assert.equal(parseCertificates(wordy), authority + otherAuthority)
})

const lines = authority.split('\n')
const refused: [string, unknown][] = [
  ['nothing', ''],
  ['a number', 7],
  ['a list', [authority]],
  ['words', 'trust me'],
  ['an empty block', `${lines[0]}\n${lines.at(-2)}\n`],
  ['a block without its middle', lines.toSpliced(3, 2).join('\n')],
  ['a block without its end', lines.slice(0, -2).join('\n')],
  ['a bad block after a good one', `${authority}${lines.toSpliced(3, 2).join('\n')}`],
  ['a key', authority.replaceAll('CERTIFICATE', 'PRIVATE KEY')],
  ['a key after a certificate', authority + authority.replaceAll('CERTIFICATE', 'PRIVATE KEY')],
  ['more than 64 KiB', authority.repeat(120)],
]

for (const [what, value] of refused) {
  test(`${what} is rejected`, () => {
    assert.throws(() => parseCertificates(value), { kind: 'invalid', reason: 'bad_ca_bundle' })
  })
}
