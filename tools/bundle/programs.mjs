/**
 * Bundles of the programs that start often: loading a thousand source files takes most of the processor time of a start. Plain
 * JavaScript without dependencies, because `tools/prepare.mjs` runs it on Node 20.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'

export const bundleFolder = 'node_modules/.cache/programs'
export const manifestName = 'manifest.json'

/**
 * @typedef {object} Manifest
 * @property {ReadonlyArray<readonly [path: string, mtimeMs: number, size: number]>} inputs files of the repository
 * @property {readonly string[]} outputs
 */

/**
 * Returns the file that runs `atoll`: the bundle if it matches the sources, and the source otherwise.
 * @param {string} root
 */
export function atollProgram(root) {
  return bundleIsCurrent(root)
    ? join(root, bundleFolder, 'atoll.mjs')
    : join(root, 'apps/cli/src/main.ts')
}

/**
 * Compares size and time of each input, which takes about 10 ms; reading them would take longer than the bundle saves.
 * @param {string} root
 */
export function bundleIsCurrent(root) {
  const inputs = readManifest(root)?.inputs ?? []
  return inputs.length > 0 && isOwn(root) && inputs.every((input) => isUnchanged(root, input))
}

/**
 * Whether the bundle is in this clone: two clones may share `node_modules` by a link, and a bundle finds its clone by its place.
 * @param {string} root
 */
function isOwn(root) {
  return realpathSync(join(root, bundleFolder)) === join(realpathSync(root), bundleFolder)
}

/**
 * @param {string} root
 * @param {Manifest['inputs'][number]} input
 */
function isUnchanged(root, [path, mtimeMs, size]) {
  const found = statSync(join(root, path), { throwIfNoEntry: false })
  return found?.mtimeMs === mtimeMs && found.size === size
}

/**
 * @param {string} root
 * @returns {Manifest | undefined}
 */
export function readManifest(root) {
  try {
    const manifest = JSON.parse(readFileSync(join(root, bundleFolder, manifestName), 'utf8'))
    return Array.isArray(manifest?.inputs) ? manifest : undefined
  } catch {
    return undefined // missing or damaged: built again
  }
}
