/** Earlier release of Atoll from this repository's history, to run next to this one. */
import { access, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { run, tryRun } from '@atoll/kit/run'
import { repository } from '../installation.ts'

interface KnownRelease {
  readonly version: string
  readonly commit: string
}

/** Newest commit of the previous release. */
const previousRelease: KnownRelease = {
  version: '0.2.0',
  commit: '94bf9167f4c5b29317da67e6a191dae41beec733',
}

/** Earlier state of this release, since the one before had no fleets. */
export const earlierFleet: KnownRelease = {
  version: '0.2.0',
  commit: 'ac7eb09021ebf06a2f4c27895e1f5e1d6f8824de',
}

export interface EarlierRelease extends AsyncDisposable {
  readonly dir: string
  readonly version: string
}

/** Returns undefined when the history lacks the commit, as in a shallow clone. */
export async function openEarlierRelease({ version, commit } = previousRelease): Promise<
  EarlierRelease | undefined
> {
  const { code } = await tryRun('git', ['-C', repository, 'cat-file', '-e', commit])
  if (code !== 0) return undefined
  const dir = await mkdtemp('/var/tmp/atoll-earlier-')
  const archive = join(dir, 'source.tar')
  const archiveArgs = ['archive', '--output', archive, commit]
  await run('git', ['-C', repository, ...archiveArgs], { timeoutMs: 60_000 })
  await run('tar', ['--extract', '--file', archive, '--directory', dir], { timeoutMs: 60_000 })
  for (const folder of await packageFolders(dir)) {
    // Hard links: the packages take half a gigabyte. Links between workspaces are relative, so they point into the
    // copy.
    const args = ['--archive', '--link', join(repository, folder), join(dir, folder)]
    const linkResult = await tryRun('cp', args, { timeoutMs: 300_000 })
    if (linkResult.code === 0) continue
    await run('cp', ['--archive', ...args.slice(2)], { timeoutMs: 300_000 })
  }
  return {
    ...{ dir, version },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

/** Lists the folders with npm packages: at the top, and in workspaces of the release that need other versions. */
async function packageFolders(release: string): Promise<string[]> {
  const folders = ['node_modules']
  for (const group of ['apps', 'packages']) {
    for (const name of await readdir(join(release, group))) {
      const folder = join(group, name, 'node_modules')
      const exists = await access(join(repository, folder)).then(
        () => true,
        () => false,
      )
      if (exists) folders.push(folder)
    }
  }
  return folders
}
