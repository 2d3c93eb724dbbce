import { join } from 'node:path'
import { bundlePrograms } from './build.ts'

/** Started by `tools/prepare.mjs` when a source has changed. */
await bundlePrograms(join(import.meta.dirname, '../..'))
