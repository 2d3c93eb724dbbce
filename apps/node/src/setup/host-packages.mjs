/**
 * Finds needed and missing host packages. Plain JavaScript without package imports: set-up runs it with the machine's
 * own Node.js before anything is installed.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Older releases cannot checkpoint a process that holds a TCP socket in an epoll set. */
export const minimumRunscVersion = 20240729

/**
 * @typedef {object} HostPackage
 * @property {string} name the Debian package
 * @property {string} binary a program in the package; its presence proves that the package is installed
 * @property {string} reason what Atoll uses the package for
 * @property {string} [versionFlag] used instead of `--version`
 */

/** @returns {HostPackage[]} */
export function readHostPackages() {
  return JSON.parse(readFileSync(new URL('../../host-packages.json', import.meta.url), 'utf8'))
}

/**
 * Returns the required packages. Debian's runsc is not needed when ATOLL_RUNSC is set.
 * @param {Record<string, string | undefined>} environment
 * @returns {HostPackage[]}
 */
export function neededHostPackages(environment) {
  const packages = readHostPackages()
  return environment.ATOLL_RUNSC ? packages.filter(({ binary }) => binary !== 'runsc') : packages
}

/**
 * Adds the folders of system programs to the search path, which a regular user's path often lacks.
 * @param {string | undefined} path
 * @returns {string}
 */
export function systemPath(path) {
  return [path, '/usr/local/sbin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
    .filter(Boolean)
    .join(':')
}

/**
 * @param {readonly HostPackage[]} packages
 * @param {string} path
 * @returns {HostPackage[]} the missing packages, and runsc when it is too old
 */
export function missingHostPackages(packages, path) {
  return packages.filter(({ binary }) => {
    const file = findBinary(binary, path)
    if (file === undefined) return true
    return binary === 'runsc' && !((runscVersion(file) ?? 0) >= minimumRunscVersion)
  })
}

/**
 * @param {string} name
 * @param {string} path
 * @returns {string | undefined}
 */
export function findBinary(name, path) {
  return path
    .split(':')
    .filter(Boolean)
    .map((folder) => join(folder, name))
    .find(isExecutable)
}

/**
 * @param {string} file
 * @returns {number | undefined} the release date as a number, such as 20240729
 */
function runscVersion(file) {
  const { stdout } = spawnSync(file, ['--version'], { encoding: 'utf8', timeout: 10_000 })
  return parseRunscVersion(stdout ?? '')
}

/**
 * Parses Debian's `0.0~20240729.0` and gVisor's `release-20240729.0`.
 * @param {string} text
 * @returns {number | undefined}
 */
export function parseRunscVersion(text) {
  const match = /\b(20\d{6})\b/.exec(text)
  return match ? Number(match[1]) : undefined
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
