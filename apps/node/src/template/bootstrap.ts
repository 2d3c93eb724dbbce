import { spawn } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { Fault } from '@atoll/kit/fault'

/** Lines that mmdebstrap prints for the packages of the base template; only the bar depends on it. */
const expectedSteps = 440

export interface Bootstrap {
  readonly root: string
  readonly suite: string
  readonly packages: readonly string[]
  readonly excludedPaths: readonly string[]
  /** apt sources in the deb822 form. */
  readonly sources: string
  readonly progress: (fraction: number) => void
  readonly signal?: AbortSignal | undefined
}

/** Puts a Debian into the folder `root`, from its packages. Scratch files lie beside it. */
export async function bootstrapDebian(task: Bootstrap): Promise<void> {
  const work = await mkdtemp(join(dirname(task.root), 'bootstrap-'))
  try {
    const sourcesFile = join(work, 'debian.sources')
    await writeFile(sourcesFile, task.sources)
    const hook = join(work, 'exclude')
    await writeFile(hook, excludeScript(task.excludedPaths))
    await chmod(hook, 0o755)
    await runToTheEnd(task, [
      'mmdebstrap',
      '--verbose',
      '--mode=root',
      '--variant=minbase',
      '--format=directory',
      `--include=${task.packages.join(',')}`,
      '--aptopt=Acquire::Languages "none"',
      '--dpkgopt=force-unsafe-io',
      `--extract-hook=${hook} "$1"`,
      task.suite,
      task.root,
      sourcesFile,
    ])
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/**
 * mmdebstrap runs in process and mount namespaces of its own that end with us: nothing of it goes on
 * in a folder that somebody else believes abandoned, and no mount is left behind.
 */
async function runToTheEnd(task: Bootstrap, command: readonly string[]): Promise<void> {
  const child = spawn(
    'setpriv',
    ['--pdeathsig=KILL', 'unshare', '--mount-proc', '--pid', '--fork', '--kill-child', ...command],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      killSignal: 'SIGKILL',
      ...(task.signal && { signal: task.signal }),
    },
  )
  const said: string[] = []
  let steps = 0
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      said.push(line)
      if (said.length > 40) said.shift()
      if (!isStep(line)) return
      steps += 1
      task.progress(Math.min(steps / expectedSteps, 1))
    })
  }
  const failure = await new Promise<string | undefined>((resolve) => {
    let error: Error | undefined
    child.once('error', (cause) => (error = cause))
    // The last process of the namespaces holds the pipes: after this nothing writes any more.
    child.once('close', (code) => {
      resolve(error?.message ?? (code === 0 ? undefined : `exit ${code}`))
    })
  })
  if (failure === undefined) return
  task.signal?.throwIfAborted()
  throw new Fault(
    'unavailable',
    'base_template',
    `mmdebstrap could not build the base template (${failure}). Its last words:\n${said.join('\n')}`,
  )
}

function isStep(line: string): boolean {
  return /^(Get:\d|Unpacking |Setting up )/.test(line)
}

/**
 * dpkg is told of the excluded paths only after the first extraction: mmdebstrap would otherwise
 * filter each archive by a program of its own, which takes three times as long.
 */
function excludeScript(excludedPaths: readonly string[]): string {
  return `#!/bin/sh
set -eu
cat > "$1/etc/dpkg/dpkg.cfg.d/excluded-paths" <<'END'
${excludedPaths.join('\n')}
END
rm -rf "$1"/usr/share/man/* "$1"/usr/share/info/* "$1"/usr/share/locale/*
find "$1/usr/share/doc" -not -name copyright -not -type d -delete
`
}
