/**
 * Import rules between packages, apps and their folders, as tables. A folder of an app that no table names is an
 * adapter.
 */
import { dirname, join } from 'node:path/posix'
import type { Import, SourceFile } from './source-files.ts'

export interface Violation {
  readonly path: string
  readonly line: number
  readonly message: string
}

/**
 * Packages of the repository that a package may import, whole or by one published path. Apps without an entry may
 * import every package of `shared`.
 */
const shared = ['kit', 'contracts', 'client']
const packagesOf: Record<string, readonly string[]> = {
  kit: [],
  contracts: ['kit'],
  client: ['contracts', 'kit'],
  objects: ['kit'],
  'simulated-node': ['contracts', 'kit'],
  // Runs the composition roots of the other apps in one process.
  server: [...shared, 'api', 'edge', 'node', 'dashboard/build'],
  // `doctor`, `down` and `status` work on the machine itself, also without a server.
  cli: [...shared, 'server', 'node/setup/doctor', 'node/teardown', 'node/inventory', 'node/config'],
  // The node bundles envd for its sandboxes and reports its version.
  node: [
    ...shared,
    'objects',
    'envd/version',
    'envd/node-flags',
    'egress/control',
    'egress/authority',
  ],
}

/** Apps without layers. */
const flatApps = ['cli', 'server', 'dashboard']

/** Folder for the modules of a composition root that is too large for one file. */
const compositionFolder = 'composition'

/**
 * Declarations that cross processes. Every layer may import their types, and adapters also their schemas, so that no
 * layer declares them again.
 */
const declarations = ['contracts/network/config', 'contracts/network/rules']

interface Layer {
  /** Other folders of the same app, besides the layer's own. */
  readonly folders: readonly string[]
  readonly packages: readonly string[]
  /** External packages and modules of Node.js. Undefined: everything that the app declares. */
  readonly external?: readonly string[]
}

const pure = ['node:crypto', 'node:path', 'node:path/posix', 'node:util', 'node:net', 'ipaddr.js']
const timing = ['node:timers', 'node:timers/promises', 'node:events']

const layers: Record<string, Layer> = {
  domain: { folders: [], packages: ['kit'], external: pure },
  app: { folders: ['domain'], packages: ['kit'], external: [...pure, ...timing] },
  // Inbound adapters call use cases and speak the contract.
  http: { folders: ['domain', 'app'], packages: ['kit', 'contracts'] },
  rpc: { folders: ['domain', 'app'], packages: ['kit', 'contracts'] },
  inbound: { folders: ['domain', 'app'], packages: ['kit'] },
  nodes: { folders: ['domain'], packages: ['kit', 'contracts'] },
  // Foundations of the other adapters of the node.
  linux: { folders: ['domain'], packages: ['kit'] },
  debian: { folders: [], packages: ['kit'] },
}
const adapter: Layer = {
  folders: ['domain', 'linux', 'debian'],
  packages: ['kit', 'client', 'objects', 'envd', 'egress'],
}
/** The doctor reports unreadable records. */
layers['setup'] = { ...adapter, folders: [...adapter.folders, 'state'] }

/** Libraries that an app may not import, not even through our packages, with the reason. */
const banned: Record<string, { readonly names: readonly string[]; readonly reason: string }> = {
  envd: {
    names: ['zod', 'pino', 'kysely', 'fastify'],
    reason: 'envd starts in every sandbox, so each library costs time and memory there',
  },
}

/** Folders of simulators and fixtures. They follow the rules of tests, and only tests may import them. */
const testFolders = ['sim', 'testing']
/** Packages that only tests may import. */
const testPackages = ['simulated-node']

/** Files beside the composition root that adapters may import too. */
const sharedRootFiles = ['config.ts', 'version.ts']

/** `command-environment.ts` only passes the environment on to programs. */
const environmentReaders = ['config.ts', 'main.ts', 'command-environment.ts']

export function findViolations(files: readonly SourceFile[]): Violation[] {
  const known = new Map(files.map((file) => [file.path, file]))
  return files.flatMap((file) => [
    ...environmentViolations(file),
    ...file.imports.flatMap((imported) => {
      const message = findObjection(file.path, imported)
      return message ? [{ path: file.path, line: imported.line, message }] : []
    }),
    ...bannedViolations(file, known),
  ])
}

function findObjection(path: string, imported: Import): string | undefined {
  const { specifier } = imported
  const from = placeOf(path)
  if (specifier.startsWith('.')) return relativeObjection(path, specifier)
  if (specifier.startsWith('@atoll/')) return packageObjection(from, imported)
  const allowed = from.isTest ? undefined : layerOf(from)?.external
  return allowed && !allowed.includes(specifier)
    ? `${from.layer} must stay free of I/O and frameworks: it may not import ${specifier}`
    : undefined
}

function relativeObjection(path: string, specifier: string): string | undefined {
  const from = placeOf(path)
  const target = placeOf(join(dirname(path), specifier))
  if (target.owner !== from.owner)
    return `import ${target.owner} by its package name, not by a relative path`
  if (from.isTest) return undefined
  if (testFolders.includes(target.layer)) return `only tests may import ${target.layer}`
  const layer = layerOf(from)
  if (!layer || target.layer === from.layer) return undefined
  const isShared =
    target.layer === '' && sharedRootFiles.some((name) => specifier.endsWith(`/${name}`))
  if (isShared && layer.external === undefined) return undefined
  if (layer.folders.includes(target.layer)) return undefined
  return `${from.layer} may not import ${target.layer || 'the composition root'}`
}

function packageObjection(from: Place, { specifier, isTypeOnly }: Import): string | undefined {
  const [, owner = '', ...rest] = specifier.split('/')
  if (owner === from.owner) return 'a package must import its own files by relative paths'
  if (from.isTest && (rest[0] === 'sim' || testPackages.includes(owner))) return undefined
  const allowed = packagesOf[from.owner] ?? shared
  if (!allowed.includes(owner) && !allowed.includes([owner, ...rest].join('/'))) {
    return `${from.owner} may not import ${owner}`
  }
  const layer = layerOf(from)
  if (from.isTest || !layer || layer.packages.includes(owner)) return undefined
  const isAdapter = layer.external === undefined
  const isDeclaration = declarations.includes([owner, ...rest].join('/'))
  if (isDeclaration && (isTypeOnly || isAdapter)) return undefined
  return `${from.layer} may not import ${owner}`
}

function bannedViolations(file: SourceFile, known: ReadonlyMap<string, SourceFile>): Violation[] {
  const { owner, isTest } = placeOf(file.path)
  const ban = banned[owner]
  if (!ban || isTest) return []
  return file.imports.flatMap(({ specifier, line }) => {
    const found = loadedPackages(specifier, file.path, known, new Set()).find((name) =>
      ban.names.includes(name),
    )
    const message = `${owner} may not reach ${found}: ${ban.reason}`
    return found ? [{ path: file.path, line, message }] : []
  })
}

/** Returns the external packages that an import loads, directly or through our packages. */
function loadedPackages(
  specifier: string,
  importer: string,
  known: ReadonlyMap<string, SourceFile>,
  seen: Set<string>,
): string[] {
  const path = resolve(specifier, importer)
  if (path === undefined) return [specifier.split('/')[0] ?? specifier]
  if (seen.has(path)) return []
  seen.add(path)
  const imports = known.get(path)?.imports ?? []
  return imports.flatMap((next) => loadedPackages(next.specifier, path, known, seen))
}

function resolve(specifier: string, importer: string): string | undefined {
  if (specifier.startsWith('.')) return join(dirname(importer), specifier)
  const match = /^@atoll\/([\w-]+)\/(.+)$/.exec(specifier)
  return match ? `packages/${match[1]}/src/${match[2]}.ts` : undefined
}

function environmentViolations({ path, environmentReads }: SourceFile): Violation[] {
  const { isTest } = placeOf(path)
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (isTest || environmentReaders.includes(name)) return []
  const message = `only ${environmentReaders.join(', ')} may read process.env`
  return environmentReads.map((line) => ({ path, line, message }))
}

interface Place {
  /** Short name of the app or package. */
  readonly owner: string
  readonly isApp: boolean
  /** Folder below `src`; empty for the composition root and its folder. */
  readonly layer: string
  readonly isTest: boolean
}

function placeOf(path: string): Place {
  const [kind, owner = '', , ...rest] = path.split('/')
  const folder = rest.length > 1 ? (rest[0] ?? '') : ''
  const layer = folder === compositionFolder ? '' : folder
  return {
    owner,
    isApp: kind === 'apps',
    layer,
    isTest: testFolders.includes(layer) || /\.(test|contract)\.ts$/.test(path),
  }
}

/** Returns undefined for packages, flat apps and composition roots, which have no layers. */
function layerOf({ owner, isApp, layer }: Place): Layer | undefined {
  if (!isApp || flatApps.includes(owner) || layer === '') return undefined
  return layers[layer] ?? adapter
}
