import assert from 'node:assert/strict'
import { chmod, chown, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkRunsc } from './check-runsc.ts'
import { chooseRuntime } from './choose-runtime.ts'
import { runDoctor } from './doctor.ts'

async function setup(answer: string) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-runsc-'))
  const file = join(dir, 'bin', 'runsc')
  await mkdir(join(dir, 'bin'))
  await writeFile(file, `#!/bin/sh\n${answer}\n`)
  await chmod(file, 0o755)
  return { dir, file, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) }
}

const current = 'echo runsc version release-20250421.0; echo spec: 1.1.0'

test('a newer release at any path is taken, also by a link', async () => {
  await using made = await setup(current)
  assert.equal(await checkRunsc(made.file), undefined)
  const link = join(made.dir, 'link')
  await symlink(made.file, link)
  assert.equal(await checkRunsc(link), undefined)
})

for (const [name, answer, reason] of [
  ['another program', 'echo something else', /does not answer --version as runsc does/],
  ['a program that fails', `${current}; exit 3`, /does not answer --version as runsc does/],
  [
    'a build without a date',
    'echo runsc version VERSION_MISSING',
    /no release date .*VERSION_MISSING/,
  ],
  ['an old release', 'echo runsc version release-20230920.0', /20230920 is too old; 20240729/],
] as const) {
  test(`${name} is refused`, async () => {
    await using made = await setup(answer)
    assert.match((await checkRunsc(made.file)) ?? '', reason)
  })
}

for (const [name, change, reason] of [
  ['that is absent', (file: string) => rm(file), /\(ENOENT\)/],
  ['that is a folder', (file: string) => rm(file).then(() => mkdir(file)), /is not a file/],
  ['that is not executable', (file: string) => chmod(file, 0o644), /\(EACCES\)/],
  [
    'that is no program',
    (file: string) => writeFile(file, 'no program'),
    /cannot be executed|--version/,
  ],
  [
    'that others may write',
    (file: string) => chmod(file, 0o757),
    /others than root can change \S+runsc,/,
  ],
  [
    'of another user',
    (file: string) => chown(file, 1000, 0),
    /others than root can change \S+runsc,/,
  ],
  ['in a folder of others', (file: string) => chmod(join(file, '..'), 0o777), /can change \S+bin,/],
] as const) {
  test(`a runsc ${name} is refused`, async () => {
    await using made = await setup(current)
    await change(made.file)
    assert.match((await checkRunsc(made.file)) ?? '', reason)
  })
}

test('a node does not start with one that is refused, whatever its runtime, and says what to do', async () => {
  for (const ATOLL_RUNTIME of ['auto', 'runc'] as const) {
    await assert.rejects(chooseRuntime({ ATOLL_RUNTIME, ATOLL_RUNSC: '/nonexistent/runsc' }), {
      reason: 'runsc_refused',
      message: /ATOLL_RUNSC=\/nonexistent\/runsc .*\(ENOENT\).*unset it/,
    })
  }
})

test('the doctor looks at the one that is named, not at that on the search path', async () => {
  await using made = await setup('echo runsc version release-20230920.0')
  const findings = await runDoctor({ PATH: '/usr/bin', ATOLL_RUNSC: made.file })
  const about = (name: string) => findings.find((finding) => finding.name === name)
  assert.match(about('runsc')?.detail ?? '', /20230920 is too old/)
  assert.match(about('runsc')?.fix ?? '', /ATOLL_RUNSC/)
  assert.equal(about('gVisor')?.state, 'missing')
})
