import { run } from '@atoll/kit/run'
import { minimumRunscVersion, parseRunscVersion } from './host-packages.mjs'

/**
 * By which name the memory that this machine's runsc keeps goes: what one release writes another does not read.
 * Undefined for one that is too old: it would end a sandbox that it cannot save.
 */
export function runscMemoryFormat(): () => Promise<string | undefined> {
  let format: Promise<string | undefined> | undefined
  return () => (format ??= read())
}

async function read(): Promise<string | undefined> {
  const text = await run('runsc', ['--version'])
  const isNew = (parseRunscVersion(text) ?? 0) >= minimumRunscVersion
  return isNew ? text.split('\n')[0]?.trim() : undefined
}
