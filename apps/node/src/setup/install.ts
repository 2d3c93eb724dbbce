/**
 * Installs missing host packages with apt. When the release's runsc is too old, it comes from the backports of the
 * release, at the machine's own mirror.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { Fault } from '@atoll/kit/fault'
import { candidateOf } from '../debian/apt-candidate.ts'
import { findRelease, formatDeb822, readAptSources } from '../debian/apt-sources.ts'
import { aptGet } from '../debian/apt.ts'
import { minimumRunscVersion, missingHostPackages, parseRunscVersion } from './host-packages.mjs'
import { parseOsRelease } from '../debian/os-release.mjs'
import type { AptSource } from '../debian/apt-sources.ts'
import type { HostPackage } from './host-packages.mjs'

const backportsFile = '/etc/apt/sources.list.d/atoll-backports.sources'

export async function installHostPackages(options: {
  readonly packages: readonly HostPackage[]
  readonly path: string
  readonly progress: (label: string, fraction: number) => void
}): Promise<void> {
  const missing = missingHostPackages(options.packages, options.path)
  if (missing.length === 0) return
  const { codename } = parseOsRelease(await readFile('/etc/os-release', 'utf8'))
  options.progress('reading the package lists', 0)
  const staleLists = await updateLists()
  const names: string[] = []
  for (const { name } of missing) names.push(name === 'runsc' ? await nameRunsc(codename) : name)
  const label = names.join(' ')
  await aptGet(['install', '--yes', '--no-install-recommends', ...names], (fraction) => {
    options.progress(label, fraction)
  }).catch((error: unknown) => {
    throw staleLists ?? error
  })
  options.progress(label, 1)
  failIfStillMissing(missingHostPackages(missing, options.path))
}

/** Updates the package lists. Returns the error: an unreachable archive matters only if the installation fails too. */
async function updateLists(): Promise<unknown> {
  try {
    await aptGet(['update', '--error-on=any'], () => {})
    return undefined
  } catch (error) {
    return error
  }
}

/** Returns the package name for apt, with the backports suite when the release's runsc is too old. */
async function nameRunsc(codename: string): Promise<string> {
  if (await candidateSuffices()) return 'runsc'
  const sources = await readAptSources()
  const backports = backportsOf(sources, codename)
  const [suite = ''] = backports.suites
  if (!findRelease(sources, suite)) {
    await writeFile(backportsFile, formatDeb822(backports))
    await updateLists()
  }
  return `runsc/${suite}`
}

/** Returns the release's archive with the backports suite. */
export function backportsOf(sources: readonly AptSource[], codename: string): AptSource {
  const release = findRelease(sources, codename)
  if (!release) {
    throw new Fault(
      'unavailable',
      'apt_sources',
      `The apt sources of this machine name no archive for ${codename || 'its release'}, ` +
        `so runsc ${minimumRunscVersion} or newer cannot be found. Install it by hand.`,
    )
  }
  return { ...release, suites: [`${codename}-backports`] }
}

async function candidateSuffices(): Promise<boolean> {
  return (parseRunscVersion(await candidateOf('runsc')) ?? 0) >= minimumRunscVersion
}

function failIfStillMissing(missing: readonly HostPackage[]): void {
  if (missing.length === 0) return
  const programs = missing.map(({ name, binary }) => `${binary} (package ${name})`).join(', ')
  throw new Fault(
    'unavailable',
    'host_packages',
    `Installed, but still absent or too old on the search path: ${programs}`,
  )
}
