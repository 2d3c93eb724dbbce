import { access, constants, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { tryRun } from '@atoll/kit/run'
import { minimumRunscVersion, parseRunscVersion } from './host-packages.mjs'

export const runscFix =
  'Set ATOLL_RUNSC to an executable runsc that only root can change, or unset it to use the one on the search path'

/** Returns what is wrong with the runsc in ATOLL_RUNSC, or undefined. */
export async function checkRunsc(file: string): Promise<string | undefined> {
  const wrong = await findProblem(file).catch(
    (error: NodeJS.ErrnoException) => `it cannot be executed (${error.code ?? error.message})`,
  )
  return wrong && `ATOLL_RUNSC=${file} is refused: ${wrong}`
}

async function findProblem(file: string): Promise<string | undefined> {
  const target = await realpath(file)
  if (!(await stat(target)).isFile()) return 'it is not a file'
  await access(target, constants.X_OK)
  const writable = (await findWritable(target)) ?? (await findWritable(dirname(file)))
  if (writable !== undefined)
    return `others than root can change ${writable}, and Atoll runs it as root`
  return findReleaseProblem(file)
}

/** Finds a path component that users other than root can change. A sticky folder protects its content. */
async function findWritable(path: string): Promise<string | undefined> {
  const { uid, mode } = await stat(path)
  const isSticky = (mode & 0o1000) !== 0
  if (uid !== 0 || ((mode & 0o022) !== 0 && !isSticky)) return path
  return path === '/' ? undefined : findWritable(dirname(path))
}

async function findReleaseProblem(file: string): Promise<string | undefined> {
  const { code, stdout } = await tryRun(file, ['--version'], { timeoutMs: versionLimitMs })
  const [firstLine = ''] = stdout.split('\n')
  if (code !== 0 || !firstLine.startsWith('runsc version ')) {
    return 'it does not answer --version as runsc does'
  }
  const release = parseRunscVersion(firstLine)
  if (release === undefined) return `its version has no release date ("${firstLine.slice(0, 100)}")`
  if (release >= minimumRunscVersion) return undefined
  return `release ${release} is too old; ${minimumRunscVersion} or newer is needed`
}

const versionLimitMs = 10_000
