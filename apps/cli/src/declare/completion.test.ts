import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { runProgram } from '../sim/run-cli.ts'

/** Runs the real completion function of bash on a command line whose last word is being typed. */
async function complete(script: string, words: readonly string[]): Promise<string[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-completion-'))
  const file = join(folder.path, 'completion.bash')
  await writeFile(file, script)
  // No `-e`: compgen fails when nothing matches.
  const session = `source "$1"; shift; compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _atoll; printf '%s\\n' "\${COMPREPLY[@]}"`
  const printed = await run('bash', ['-uc', session, 'bash', file, ...words])
  return printed.trim().split('\n')
}

test('bash completes commands, aliases, options, choices and folders', async () => {
  const { stdout: script } = await runProgram(['completion', 'bash'], {})
  assert.deepEqual(await complete(script, ['atoll', 'temp']), ['template'])
  assert.ok((await complete(script, ['atoll', 'sb', ''])).includes('cp'))
  assert.deepEqual(await complete(script, ['atoll', 'sandbox', 'list', '--state', '']), [
    'running',
    'paused',
  ])
  assert.deepEqual(await complete(script, ['atoll', 'template', 'build', '--name', 'x', '--no']), [
    '--no-cache',
  ])
  assert.deepEqual(await complete(script, ['atoll', 'completion', 'f']), ['fish'])
  assert.ok((await complete(script, ['atoll', 'template', 'build', '/et'])).includes('/etc'))
})

test('zsh and fish have a script with every command', async () => {
  for (const shell of ['zsh', 'fish']) {
    const { code, stdout } = await runProgram(['completion', shell], {})
    assert.equal(code, 0)
    for (const word of ['atoll sandbox cp', 'atoll template build', 'atoll secret create']) {
      assert.ok(
        stdout.includes(`'${word}'`) || stdout.includes(`'\\''${word}'\\''`),
        `${shell}: ${word}`,
      )
    }
  }
})

test('an unknown shell is a usage error', async () => {
  assert.equal((await runProgram(['completion', 'tcsh'], {})).code, 2)
})
