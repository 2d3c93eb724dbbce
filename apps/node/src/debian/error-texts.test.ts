import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { tryRun } from '@atoll/kit/run'
import { candidateOf } from './apt-candidate.ts'
import { aptFault } from './apt.ts'

test('apt-cache policy prints the version as "Candidate: …" (apt-candidate.ts)', async () => {
  assert.match(await candidateOf('base-files'), /^\d\S*$/)
})

test('apt-get says "Could not connect" for a mirror that does not answer (apt.ts)', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-apt-'))
  t.after(() => rm(dir, { recursive: true }))
  // No server listens on port 1. All files of apt are in a folder of their own.
  const source = 'deb [trusted=yes] http://127.0.0.1:1/debian stable main'
  const { code, stdout, stderr } = await tryRun('sh', [
    ...['-c', script, 'sh', dir, source],
    ...['-o', 'Acquire::http::Proxy=false', '-o', 'Acquire::Retries=0'],
  ])
  assert.notEqual(code, 0)
  assert.match(aptFault(['update'], code, stdout + stderr).message, /mirror cannot be reached/)
})

const script = `
dir=$1; echo "$2" > "$dir/sources.list"; shift 2; mkdir -p "$dir/lists/partial"
apt-get update --error-on=any -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=- \
  -o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir" "$@"`
