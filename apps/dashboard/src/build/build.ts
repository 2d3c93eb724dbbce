/**
 * Bundles the pages. The result is one file, `dist/bundle.json`, that is replaced atomically: a crash or two servers at
 * once leave either the old bundle or a complete new one. A hash of all inputs decides whether it is current.
 */
import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { writeFileAtomic } from '@atoll/kit/atomic-file'

export interface DashboardBundle {
  /** Path of the script that starts the page. */
  readonly script: string
  readonly style: string
  readonly assets: readonly Asset[]
}

export interface Asset {
  readonly path: string
  readonly type: string
  /** Content, compressed, as base64. */
  readonly gzip: string
}

interface StoredBundle extends DashboardBundle {
  readonly inputs: string
}

const folder = join(import.meta.dirname, '../..')
const repository = join(folder, '../..')
const output = join(folder, 'dist/bundle.json')

/** Returns the bundle; builds it first if an input changed. `onBuild` is called only in that case. */
export async function buildDashboard(onBuild: () => void = () => {}): Promise<DashboardBundle> {
  const inputs = await hashInputs()
  const stored = await readStored()
  if (stored?.inputs === inputs) return stored
  onBuild()
  const bundle = { inputs, ...(await bundlePages()) }
  await mkdir(join(folder, 'dist'), { recursive: true })
  // A checkout that cannot be written to, such as a read-only mount, builds on each start.
  await writeFileAtomic(output, JSON.stringify(bundle), 0o644).catch(() => {})
  return bundle
}

async function hashInputs(): Promise<string> {
  const sources = globSync('src/**/*.{ts,tsx,css,svg}', { cwd: folder })
    .filter((path) => !path.endsWith('.test.ts'))
    .toSorted((a, b) => (a < b ? -1 : 1))
  const paths = [
    ...sources.map((path) => join(folder, path)),
    join(repository, 'package-lock.json'),
  ]
  const hash = createHash('sha256')
  for (const path of paths) hash.update(path.slice(repository.length)).update(await readFile(path))
  return hash.digest('hex')
}

async function readStored(): Promise<StoredBundle | undefined> {
  try {
    return JSON.parse(await readFile(output, 'utf8'))
  } catch {
    return undefined // missing or damaged: built again
  }
}

async function bundlePages(): Promise<DashboardBundle> {
  const { build } = await import('esbuild')
  const { outputFiles, metafile } = await build({
    absWorkingDir: folder,
    entryPoints: ['src/main.tsx'],
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    outdir: 'dist/assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
  const icon = await readFile(join(folder, 'src/icon.svg'))
  const assets = outputFiles.map(({ path, contents }) => toAsset(basename(path), contents))
  const entry = Object.entries(metafile.outputs).find(
    ([, { entryPoint }]) => entryPoint === 'src/main.tsx',
  )
  const [script = '', { cssBundle = '' } = {}] = entry ?? []
  return {
    script: assetPath(script),
    style: assetPath(cssBundle),
    assets: [...assets, toAsset('icon.svg', icon)],
  }
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

function toAsset(name: string, content: Uint8Array): Asset {
  const gzip = gzipSync(content, { level: 9 }).toString('base64')
  return { path: assetPath(name), type: types[extname(name)] ?? 'application/octet-stream', gzip }
}

function assetPath(name: string): string {
  return `/assets/${basename(name)}`
}
