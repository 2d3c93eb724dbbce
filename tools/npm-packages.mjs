/** The npm packages of the repository: are they those of the lockfile, and if not, install them. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * A stamp in `node_modules` holds the hash of the lockfile it was made from. Without a matching
 * stamp npm's own record decides, so that a plain `npm install` is not done over again.
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
    await npmCi(root)
  } finally {
    clearInterval(tick)
  }
  process.stderr.write(`atoll: npm packages installed in ${elapsed()}\n`)
  if (!npmPackagesAreCurrent(root)) throw new Error('npm ci ended well but left packages out')
}

/**
 * No package's install script runs: none that we use needs one.
 * @param {string} root
 * @returns {Promise<void>}
 */
function npmCi(root) {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: root,
      // npm takes node_modules away while it works: it must not itself run from there.
      env: { ...process.env, PATH: withoutNodeModules(process.env.PATH ?? '') },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.once('error', (error) => reject(new Error(`npm does not run: ${error.message}`)))
    child.once('close', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`${output.trim()}\n${explainNpmFailure(output, code)}`))
    })
  })
}

/**
 * @param {string} output
 * @param {number | null} code
 * @returns {string}
 */
export function explainNpmFailure(output, code) {
  return /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT)\b/.test(
    output,
  )
    ? 'The npm registry cannot be reached. Check the network (and npm config get registry), then run this again.'
    : `npm ci failed (exit ${code}); its output is above.`
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
