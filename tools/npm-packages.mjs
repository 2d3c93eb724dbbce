/** Checks that the installed npm packages match the lockfile, and installs them. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Compares the lockfile with a stamp in `node_modules` that holds its hash. Without a matching stamp npm's own record
 * decides, so that a plain `npm install` is not repeated.
 * @param {string} root
 * @returns {boolean}
 */
export function npmPackagesAreCurrent(root) {
  const lockfile = readFileSync(join(root, 'package-lock.json'))
  const hash = createHash('sha256').update(lockfile).digest('hex')
  const stamp = join(root, 'node_modules/.atoll/lockfile-hash')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return true
  const installed = join(root, 'node_modules/.package-lock.json')
  if (!existsSync(installed)) return false
  if (!sameVersions(JSON.parse(lockfile.toString()), JSON.parse(readFileSync(installed, 'utf8'))))
    return false
  writeStamp(stamp, hash)
  return true
}

/** @param {string} root */
export async function installNpmPackages(root) {
  const started = performance.now()
  const elapsed = () => `${Math.round((performance.now() - started) / 1000)} s`
  process.stderr.write('atoll: installing npm packages\n')
  const tick = setInterval(() => {
    process.stderr.write(`atoll: installing npm packages, ${elapsed()}\n`)
  }, 10_000)
  try {
    await npmInstall(root)
  } finally {
    clearInterval(tick)
  }
  process.stderr.write(`atoll: npm packages installed in ${elapsed()}\n`)
  if (!npmPackagesAreCurrent(root))
    throw new Error(
      'npm install succeeded, but the installed versions differ from package-lock.json',
    )
}

/**
 * Links the pinned Node.js. Each architecture has its own package with the same program name, and npm may link the
 * name to a package that it does not install.
 * @param {string} root
 */
export function linkPinnedNode(root) {
  const link = join(root, 'node_modules/.bin/node')
  if (existsSync(link)) return
  const target = `../node-linux-${process.arch}/bin/node`
  if (!existsSync(join(root, 'node_modules/.bin', target))) {
    throw new Error(`There is no pinned Node.js for ${process.platform} on ${process.arch}`)
  }
  rmSync(link, { force: true })
  symlinkSync(target, link)
}

/**
 * Uses `npm install`, not `npm ci`: newer versions of `npm ci` refuse a lockfile without the optional packages of other
 * platforms, and some mirrors lack those. The caller compares the result with the lockfile. Install scripts are off,
 * because no package needs one.
 * @param {string} root
 * @returns {Promise<void>}
 */
function npmInstall(root) {
  return new Promise((resolve, reject) => {
    const child = spawn(
      'npm',
      ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'],
      {
        cwd: root,
        // npm replaces node_modules, so it must not run from there.
        env: { ...process.env, PATH: withoutNodeModules(process.env.PATH ?? '') },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.once('error', (error) => reject(new Error(`Cannot run npm: ${error.message}`)))
    child.once('close', (code) => {
      if (code === 0) resolve()
      else reject(new Error(explainNpmFailure(output, code)))
    })
  })
}

const unreachable =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|\w*_CERT_\w*)\b/
// npm 10 prints only this after all its fetches have failed.
const silentFetchFailure = /Exit handler never called/

/**
 * @param {string} output
 * @param {number | null} code
 * @returns {string}
 */
export function explainNpmFailure(output, code) {
  const lines = output.split('\n').filter((line) => !line.startsWith('npm warn'))
  const hint =
    unreachable.test(output) || silentFetchFailure.test(output)
      ? 'The npm registry cannot be reached. Check the network, the certificates and ' +
        '`npm config get registry`, then run this again.'
      : `npm install failed (exit ${code}).`
  return `${lines.join('\n').trim()}\n${hint}`
}

/** @param {string} path */
function withoutNodeModules(path) {
  return path
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter)
}

/**
 * @typedef {Record<string, { version?: string, integrity?: string, link?: boolean, optional?: boolean }>} Packages
 * @param {{ packages: Packages }} wanted
 * @param {{ packages: Packages }} installed
 */
function sameVersions({ packages: wanted }, { packages: installed }) {
  const absent = Object.entries(wanted).some(
    ([path, { version, optional }]) =>
      path !== '' && !(path in installed ? installed[path]?.version === version : optional),
  )
  return !absent && Object.keys(installed).every((path) => path in wanted)
}

/**
 * @param {string} file
 * @param {string} hash
 */
function writeStamp(file, hash) {
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, hash)
}
