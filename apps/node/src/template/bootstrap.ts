import { spawn } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { Fault } from '@atoll/kit/fault'
import type { UnpackedFolder } from './recipe.ts'

export interface Bootstrap {
  readonly root: string
  /** Name of the template, for error messages. */
  readonly name: string
  /** Number of lines that mmdebstrap prints; used only for the progress bar. */
  readonly expectedSteps: number
  readonly suite: string
  readonly packages: readonly string[]
  readonly unpacked?: readonly UnpackedFolder[]
  readonly excludedPaths: readonly string[]
  /** apt sources in deb822 format. */
  readonly sources: string
  readonly progress: (fraction: number) => void
  readonly signal?: AbortSignal | undefined
}

/** Installs Debian into the folder `root`. Puts scratch files next to it. */
export async function bootstrapDebian(task: Bootstrap): Promise<void> {
  const work = await mkdtemp(join(dirname(task.root), 'bootstrap-'))
  try {
    const sourcesFile = join(work, 'debian.sources')
    await writeFile(sourcesFile, task.sources)
    const exclude = await writeScript(join(work, 'exclude'), excludeScript(task.excludedPaths))
    const unpack = await writeScript(join(work, 'unpack'), unpackScript(task.unpacked ?? []))
    await runToTheEnd(task, [
      'mmdebstrap',
      '--verbose',
      '--mode=root',
      '--variant=minbase',
      '--format=directory',
      `--include=${task.packages.join(',')}`,
      '--aptopt=Acquire::Languages "none"',
      '--dpkgopt=force-unsafe-io',
      `--extract-hook=${exclude} "$1"`,
      `--customize-hook=${unpack} "$1"`,
      task.suite,
      task.root,
      sourcesFile,
    ])
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function writeScript(path: string, text: string): Promise<string> {
  await writeFile(path, text)
  await chmod(path, 0o755)
  return path
}

/**
 * Runs mmdebstrap in PID and mount namespaces that end with this process: it cannot keep writing to a folder that looks
 * abandoned, and leaves no mounts behind.
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
  const lastLines: string[] = []
  let steps = 0
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      lastLines.push(line)
      if (lastLines.length > 40) lastLines.shift()
      if (!isStep(line)) return
      steps += 1
      task.progress(Math.min(steps / task.expectedSteps, 1))
    })
  }
  const failure = await new Promise<string | undefined>((resolve) => {
    let error: Error | undefined
    child.once('error', (cause) => (error = cause))
    // All processes in the namespaces hold the pipes, so nothing writes after 'close'.
    child.once('close', (code) => {
      resolve(error?.message ?? (code === 0 ? undefined : `exit ${code}`))
    })
  })
  if (failure === undefined) return
  task.signal?.throwIfAborted()
  throw new Fault(
    'unavailable',
    'base_template',
    `mmdebstrap could not build the template ${task.name} (${failure}). Its last output:\n${lastLines.join('\n')}`,
  )
}

function isStep(line: string): boolean {
  return /^(Get:\d|Unpacking |Setting up )/.test(line)
}

/**
 * Returns a hook that configures dpkg's excluded paths after the first extraction. Configured earlier, mmdebstrap would
 * filter each archive with a separate program, which takes three times as long.
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

/** Returns a hook that copies folders out of packages, which apt fetches and verifies. */
function unpackScript(folders: readonly UnpackedFolder[]): string {
  const commands = folders.map(
    (folder) => `
APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get download ${folder.package}
dpkg --extract ${folder.package}_*.deb ${folder.package}
mkdir -p "$1/$(dirname ${folder.to})"
mv ${folder.package}/${folder.from} "$1/${folder.to}"`,
  )
  return `#!/bin/sh
set -eu
cd "$(dirname "$0")"${commands.join('')}
`
}
