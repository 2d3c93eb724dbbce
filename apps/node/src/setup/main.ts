import { installHostPackages } from './install.ts'
import { neededHostPackages, systemPath } from './host-packages.mjs'

/** Started by `tools/prepare.mjs` once Node.js 24 is installed. */
const started = performance.now()
let shown = -1

await installHostPackages({
  packages: neededHostPackages(process.env),
  path: systemPath(process.env.PATH),
  progress(label, fraction) {
    const tenth = Math.floor(fraction * 10)
    if (tenth === shown) return
    shown = tenth
    const seconds = Math.round((performance.now() - started) / 1000)
    process.stderr.write(`atoll: host packages ${tenth * 10} % (${seconds} s): ${label}\n`)
  },
}).catch((error: unknown) => {
  process.stderr.write(`atoll: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
