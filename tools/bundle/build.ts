/**
 * Bundles the programs into `node_modules/.cache/programs`. All but the programs themselves have names with a hash of their
 * content, and files of the build before stay: a running server loads parts of itself late.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { build } from 'esbuild'
import type { Metafile, Plugin } from 'esbuild'
import { bundleFolder, manifestName, readManifest } from './programs.mjs'

const programs = { atoll: 'apps/cli/src/main.ts', egress: 'apps/egress/src/main.ts' }

/** Native addons, and programs that run beside their own files. */
const external = ['koffi', '@lydell/node-pty', 'esbuild', 'pg-native']

/** Defines the place of the bundle for the sources in it. A bundle may be copied together with its clone. */
const banner = `\
import { createRequire as bundleRequire } from 'node:module'
import { join as bundleJoin } from 'node:path'
import { pathToFileURL as bundleUrl } from 'node:url'
const require = bundleRequire(import.meta.url)
const bundledPrograms = import.meta.dirname
const bundleRoot = bundleJoin(bundledPrograms, '${relative(`/${bundleFolder}`, '/')}')`

/** Files that are not in the bundle, but change it. */
const recipe = ['package-lock.json', 'tools/bundle/build.ts', 'tools/bundle/programs.mjs']

export async function bundlePrograms(root: string): Promise<void> {
  const folder = join(root, bundleFolder)
  const before = readManifest(root)?.outputs ?? []
  const started = Date.now()
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: programs,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    ...{ bundle: true, splitting: true, write: false, metafile: true },
    ...{ platform: 'node', format: 'esm', target: 'node24' },
    external,
    banner: { js: banner },
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'silent',
    plugins: [placeOfSources(root)],
  })
  const sources = Object.keys(metafile.inputs).filter((path) => isOwn(path))
  const inputs = [...sources, ...recipe].map((path) => {
    const { mtimeMs, size } = statSync(join(root, path))
    const mayBeNewer = mtimeMs >= started
    return [path, mtimeMs, mayBeNewer ? -1 : size] as const
  })
  sources.forEach((path) => checkLateImports(root, path, metafile))
  const outputs = outputFiles.map(({ path }) => basename(path))
  await mkdir(folder, { recursive: true })
  const isProgram = (path: string) => basename(path, '.mjs') in programs
  const inOrder = outputFiles.toSorted(
    (a, b) => Number(isProgram(a.path)) - Number(isProgram(b.path)),
  )
  for (const { path, contents } of inOrder) {
    if (isProgram(path) || !existsSync(path)) await replaceFile(path, contents)
  }
  await replaceFile(join(folder, manifestName), JSON.stringify({ inputs, outputs }))
  const kept = new Set([...outputs, ...before, manifestName])
  for (const name of await readdir(folder)) {
    if (!kept.has(name)) await rm(join(folder, name), { recursive: true })
  }
}

/** Packages in CommonJS that are imported late have only their default export in a bundle. */
function checkLateImports(root: string, path: string, { inputs }: Metafile): void {
  for (const { kind, path: target, original = '' } of inputs[path]?.imports ?? []) {
    if (kind !== 'dynamic-import' || inputs[target]?.format !== 'cjs') continue
    const text = readFileSync(join(root, path), 'utf8')
    if (!new RegExp(`\\{ default: \\w+ \\} = await import\\('${original}'\\)`).test(text)) {
      throw new Error(`${path} must import ${original} as { default: … } = await import(…)`)
    }
  }
}

/** Other files belong to packages, whose versions are in the lockfile. */
function isOwn(path: string): boolean {
  return /^(apps|packages)\/(?!.*node_modules\/)/.test(path)
}

async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(`${path}.new`, content)
  await rename(`${path}.new`, path)
}

/** Sources find files beside them by `import.meta`, which in a bundle is the place of the bundle. */
function placeOfSources(root: string): Plugin {
  return {
    name: 'place-of-sources',
    setup({ onLoad }) {
      onLoad({ filter: /\.(ts|mjs)$/ }, async ({ path }) => {
        const place = relative(root, path)
        if (!isOwn(place)) return undefined
        const text = await readFile(path, 'utf8')
        if (!text.includes('import.meta')) return undefined
        const contents = text
          .replaceAll('import.meta.main', 'false')
          .replaceAll('import.meta.dirname', `bundleJoin(bundleRoot, '${dirname(place)}')`)
          .replaceAll('import.meta.url', `bundleUrl(bundleJoin(bundleRoot, '${place}')).href`)
        if (contents.includes('import.meta')) {
          throw new Error(`${place} uses a part of import.meta that bundles do not have`)
        }
        return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' }
      })
    },
  }
}
