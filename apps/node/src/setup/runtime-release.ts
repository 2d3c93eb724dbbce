import { run } from '@atoll/kit/run'
import { minimumRunscVersion, parseRunscVersion } from './host-packages.mjs'

/** Returns the version line of a runtime program, cached after the first call. */
export function releaseOf(program: string): () => Promise<string> {
  let release: Promise<string> | undefined
  const ask = async () => {
    const [first = ''] = (await run(program, ['--version'])).split('\n')
    return first.trim()
  }
  return () => (release ??= ask())
}

/**
 * Returns the memory format of a runsc release: one release cannot read what another wrote. Undefined for a release too
 * old to checkpoint: it would kill a sandbox that it cannot save.
 */
export function runscMemoryFormat(release: string): string | undefined {
  return (parseRunscVersion(release) ?? 0) >= minimumRunscVersion ? release : undefined
}
