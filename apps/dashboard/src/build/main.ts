/** `npm run build`: bundles the dashboard and prints the sizes that a browser loads. */
import { buildDashboard } from './build.ts'
import type { Asset } from './build.ts'

const { script, style, assets } = await buildDashboard(() => {
  process.stdout.write('building the dashboard\n')
})
for (const asset of assets.toSorted((a, b) => sizeOf(b) - sizeOf(a))) {
  const isFirst = [script, style].includes(asset.path) ? '  (first load)' : ''
  process.stdout.write(`${String(sizeOf(asset)).padStart(8)} bytes  ${asset.path}${isFirst}\n`)
}

function sizeOf({ gzip }: Asset): number {
  return Buffer.byteLength(gzip, 'base64')
}
