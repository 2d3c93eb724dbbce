import assert from 'node:assert/strict'
import { test } from 'node:test'
import { permissionText } from './permissions.ts'

const cases: [number, string][] = [
  [0o100_644, '-rw-r--r--'],
  [0o100_000, '----------'],
  [0o100_777, '-rwxrwxrwx'],
  [0o040_755, 'drwxr-xr-x'],
  [0o041_777, 'dtrwxrwxrwx'],
  [0o042_750, 'dgrwxr-x---'],
  [0o104_755, 'urwxr-xr-x'],
  [0o106_711, 'ugrwx--x--x'],
  [0o120_777, 'Lrwxrwxrwx'],
  [0o020_666, 'Dcrw-rw-rw-'],
  [0o060_660, 'Drw-rw----'],
  [0o010_600, 'prw-------'],
  [0o140_755, 'Srwxr-xr-x'],
  [0o021_600, 'Dctrw-------'],
]

for (const [mode, text] of cases) {
  test(`mode ${mode.toString(8)} is formatted as ${text}`, () =>
    assert.equal(permissionText(mode), text))
}
