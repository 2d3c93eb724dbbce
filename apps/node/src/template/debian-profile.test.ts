import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'

test('the profile of Debian asks for the user as "$(id -u)", which customize-debian.ts replaces', async () => {
  assert.match(await readFile('/usr/share/base-files/profile', 'utf8'), /"\$\(id -u\)"/)
})
