/** Phases of `npm test`: which files they run, and how. */
import { memoryFolder } from '@atoll/kit/testing/memory-folder'
import { startPostgres } from '../postgres.ts'

export interface TestPhase {
  readonly name: 'unit' | 'postgres' | 'system' | 'fleet'
  readonly patterns: readonly string[]
  readonly excluded?: readonly string[]
  /** Number of processes. */
  readonly filesAtOnce: number
  /** Packages whose files share processes. */
  readonly batched?: readonly string[]
  /** The files that take longest: the phase does not end with one of them alone. */
  readonly first?: readonly string[]
  /** Files that need the machine for themselves: they fill its disk or its descriptors. */
  readonly alone?: readonly string[]
  /** Files that run beside others, but not beside each other. */
  readonly inTurns?: readonly string[]
  readonly fileLimitMinutes: number
  readonly prepare?: () => Promise<{ readonly env: NodeJS.ProcessEnv } & AsyncDisposable>
}

export const phases: readonly TestPhase[] = [
  {
    name: 'unit',
    patterns: [
      'apps/*/src/**/*.test.ts',
      'apps/*/guest/*.test.ts',
      'packages/*/src/**/*.test.ts',
      'tools/**/*.test.ts',
      'bench/src/**/*.test.ts',
    ],
    // Most files wait more than they compute.
    filesAtOnce: 6,
    batched: ['apps/api', 'apps/cli', 'apps/edge', 'apps/server', 'packages/client'],
    first: [
      'tools/test/test-batch.test.ts',
      'apps/server/src/main.test.ts',
      'apps/server/src/fleet/fleet.test.ts',
      'apps/server/src/tls/acme/acme.test.ts',
    ],
    fileLimitMinutes: 10,
  },
  {
    name: 'postgres',
    patterns: ['apps/api/src/component-tests/**/*.test.ts', 'apps/api/src/db/**/*.test.ts'],
    // Requests that are refused or answered before they reach the store.
    excluded: [
      'apps/api/src/component-tests/http/**',
      'apps/api/src/component-tests/teams/auth.test.ts',
      'apps/api/src/component-tests/network/egress-refusals.test.ts',
      'apps/api/src/component-tests/builds/{build-files,dockerfile-builds,template-requests}.test.ts',
    ],
    filesAtOnce: 6,
    batched: ['apps/api'],
    fileLimitMinutes: 10,
    prepare: preparePostgres,
  },
  {
    name: 'system',
    patterns: ['tests/system/**/*.test.ts', 'tests/ecosystem/**/*.test.ts'],
    // Need several nodes or Ceph.
    excluded: ['tests/system/fleet/rig/**', 'tests/system/fleet/object*.test.ts'],
    // System tests mostly wait for processes.
    filesAtOnce: 6,
    first: [
      'dashboard/dashboard',
      'administration/upgrade',
      'recovery/replaced-data',
      'recovery/residue',
      'recovery/quarantine',
    ].map(systemTest),
    alone: ['files/full-disk', 'recovery/power-failure', 'security/flood'].map(systemTest),
    // All of these route the same addresses to a network outside the host.
    inTurns: [
      'lifecycle/pause-connections',
      'network/egress',
      'network/egress-names',
      'network/header-rules',
      'network/network',
      'security/encryption',
    ].map(systemTest),
    fileLimitMinutes: 30,
  },
  {
    name: 'fleet',
    patterns: ['tests/system/fleet/rig/**/*.test.ts', 'tests/system/fleet/object*.test.ts'],
    // Each file starts several nodes or a Ceph.
    filesAtOnce: 1,
    fileLimitMinutes: 60,
  },
]

function systemTest(name: string): string {
  return `tests/system/${name}.test.ts`
}

/** One server for all test files; each test has a database of its own. */
async function preparePostgres() {
  const server = await startPostgres(
    { min_wal_size: '32MB', max_wal_size: '128MB' },
    memoryFolder(),
  )
  return {
    env: { ATOLL_TEST_POSTGRES: server.url },
    [Symbol.asyncDispose]: () => server.close(),
  }
}
