import { readFile } from 'node:fs/promises'
import { Fault } from '@atoll/kit/fault'
import { formatDeb822, readAptSources } from '../debian/apt-sources.ts'
import { parseOsRelease } from '../debian/os-release.mjs'
import type { AptSource } from '../debian/apt-sources.ts'

/** Returns apt sources for a Debian release, from the mirrors that this machine uses. */
export async function debianSources(suite: string): Promise<string> {
  const { codename, family } = parseOsRelease(await readFile('/etc/os-release', 'utf8'))
  const machineSources = await readAptSources()
  const sources = sourcesFor(machineSources, suite, family === 'debian' ? codename : '')
  if (sources.length === 0) {
    throw new Fault(
      'unavailable',
      'apt_sources',
      `The apt sources of this machine contain no Debian mirror, and templates need one for ${suite}. Add one in /etc/apt/sources.list.d.`,
    )
  }
  const expanded = await Promise.all(sources.map(expandMirrorLists))
  return expanded.map(formatDeb822).join('\n')
}

/** Returns the machine's sources for `suite`. If there are none, changes the sources of its own release to `suite`. */
export function sourcesFor(
  machineSources: readonly AptSource[],
  suite: string,
  codename: string,
): AptSource[] {
  const existing = sourcesOf(machineSources, suite)
  if (existing.length > 0 || codename === '') return existing
  return sourcesOf(machineSources, codename).map((source) => ({
    ...source,
    suites: source.suites.map((name) => name.replace(codename, suite)),
  }))
}

function sourcesOf(machineSources: readonly AptSource[], release: string): AptSource[] {
  const wanted = [release, `${release}-updates`, `${release}-security`]
  return machineSources
    .map((source) => ({
      ...source,
      suites: source.suites.filter((name) => wanted.includes(name)),
      components: ['main'],
    }))
    .filter(({ suites }) => suites.length > 0)
}

/** Replaces mirror lists by their entries: cloud images keep the list in a host file that sandboxes cannot read. */
async function expandMirrorLists(source: AptSource): Promise<AptSource> {
  const uris = await Promise.all(
    source.uris.map(async (uri) => {
      const match = /^mirror\+file:(?:\/\/)?(\/.*)$/.exec(uri)
      if (!match?.[1]) return [uri]
      const list = await readFile(match[1], 'utf8')
      return list.split('\n').flatMap((line) => /^\s*([a-z]+:\S+)/.exec(line)?.[1] ?? [])
    }),
  )
  return { ...source, uris: uris.flat() }
}
