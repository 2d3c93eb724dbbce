import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlatformClient } from '@atoll/client/platform'
import { runAsRoot } from '@atoll/kit/dockerfile/run-as-root'
import type { DockerfileStep } from '@atoll/kit/dockerfile/stage'
import { UsageError } from '../failure.ts'
import { createArchive } from './archive.ts'
import { openContext } from './context.ts'
import { findOrigin } from './origin.ts'
import { readDockerfile } from './read-dockerfile.ts'
import type { PlannedBuild, PlannedStep } from './run-build.ts'

/** Settings that all builds have. */
export interface BuildSettings {
  /** `[namespace/]alias[:tag]` */
  readonly name: string
  readonly tag?: readonly string[]
  readonly cpu?: number
  readonly memory?: number
  readonly startCmd?: string
  readonly readyCmd?: string
  readonly cache: boolean
}

export interface DirectoryBuild extends BuildSettings {
  readonly directory: string
  /** Path of the Dockerfile; by default in the directory. */
  readonly file?: string
  readonly buildArg?: Readonly<Record<string, string>>
}

/** The wait of the SDK and of the server for a start command without a ready command. */
const defaultReadyCommand = 'sleep 20'

/** Reads the Dockerfile and hashes the files that it copies. Does not change anything on the server. */
export async function planDirectoryBuild(
  platform: PlatformClient,
  build: DirectoryBuild,
): Promise<PlannedBuild> {
  const { directory, file, buildArg } = build
  if (!(await isDirectory(directory))) {
    throw new UsageError(`${directory} is not a directory: name the folder with the Dockerfile.`)
  }
  const text = await readText(file ?? join(directory, 'Dockerfile'))
  const { from, steps, startCommand } = readDockerfile(text, buildArg)
  const withFiles = await attachFiles(directory, steps)
  const origin = await findOrigin(platform, from, build.name)
  return toPlan(build, origin.from, {
    steps: origin.keepsUserAndDirectory ? withFiles : runAsRoot(withFiles),
    startCommand,
  })
}

/** Plans a build of shell commands on top of an image or a template. */
export async function planCommandBuild(
  platform: PlatformClient,
  build: BuildSettings & { readonly from: string; readonly run?: readonly string[] },
): Promise<PlannedBuild> {
  const steps = (build.run ?? []).map((command) => ({
    ...{ type: 'RUN', args: [command], title: `RUN ${command}` },
  }))
  const origin = await findOrigin(platform, build.from, build.name)
  return toPlan(build, origin.from, {
    steps: origin.keepsUserAndDirectory ? steps : runAsRoot(steps),
    startCommand: undefined,
  })
}

function toPlan(
  build: BuildSettings,
  from: PlannedBuild['recipe'],
  { steps, startCommand }: { steps: readonly PlannedStep[]; startCommand: string | undefined },
): PlannedBuild {
  const startCmd = build.startCmd ?? startCommand
  const readyCmd = build.readyCmd ?? (startCmd === undefined ? undefined : defaultReadyCommand)
  const { name, tag, cpu, memory } = build
  return {
    request: { name, tags: tag && [...tag], cpuCount: cpu, memoryMB: memory },
    recipe: { ...from, startCmd, readyCmd, force: !build.cache },
    steps,
  }
}

async function attachFiles(
  directory: string,
  steps: readonly DockerfileStep[],
): Promise<readonly PlannedStep[]> {
  if (!steps.some(({ copy }) => copy)) return steps
  const context = await openContext(directory)
  const planned: PlannedStep[] = []
  for (const { copy, ...step } of steps) {
    if (!copy) {
      planned.push(step)
      continue
    }
    const { args, entries } = await context.select(copy)
    planned.push({ ...step, args, archive: await createArchive(entries) })
  }
  return planned
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false
}

async function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === 'ENOENT' ? 'does not exist' : `cannot be read: ${error.message}`
    throw new UsageError(`${path} ${reason}. Name another Dockerfile with --file.`)
  })
}
