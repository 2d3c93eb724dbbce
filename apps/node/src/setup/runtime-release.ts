import { run } from '@atoll/kit/run'
import { minimumRunscVersion, parseRunscVersion } from './host-packages.mjs'

/** What a runtime's program calls itself on this machine, asked once. */
export function releaseOf(program: string): () => Promise<string> {
  let release: Promise<string> | undefined
  const ask = async () => {
    const [first = ''] = (await run(program, ['--version'])).split('\n')
    return first.trim()
  }
  return () => (release ??= ask())
}

/**
 * By which name the memory that a release of runsc keeps goes: what one writes another does not read. Undefined for one
 * that is too old: it would end a sandbox that it cannot save.
 */
export function runscMemoryFormat(release: string): string | undefined {
  return (parseRunscVersion(release) ?? 0) >= minimumRunscVersion ? release : undefined
}
