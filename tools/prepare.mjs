/**
 * Prepares a fresh clone: installs npm packages, then host packages, and bundles the programs. Plain JavaScript without
 * dependencies, for Node 20 or newer. Takes about 0.1 s if nothing is missing.
 *
 *   node tools/prepare.mjs              everything
 *   node tools/prepare.mjs --packages   no host packages
 *   node tools/prepare.mjs --program    prints the file that runs `atoll`
 */
import { spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  missingHostPackages,
  neededHostPackages,
  systemPath,
} from '../apps/node/src/setup/host-packages.mjs'
import { parseOsRelease } from '../apps/node/src/debian/os-release.mjs'
import { atollProgram, bundleIsCurrent } from './bundle/programs.mjs'
import { installNpmPackages, linkPinnedNode, npmPackagesAreCurrent } from './npm-packages.mjs'

const lockIsTaken = 75

/** An expected failure, printed without a stack trace. */
class ExpectedFailure extends Error {}

/**
 * @typedef {object} Machine
 * @property {string} root the repository
 * @property {string} path search path for programs
 * @property {string} osReleaseFile
 * @property {boolean} isSuperuser
 */

/** @returns {Machine} */
function thisMachine() {
  return {
    root: dirname(dirname(fileURLToPath(import.meta.url))),
    path: process.env.ATOLL_PREPARE_PATH ?? systemPath(process.env.PATH),
    osReleaseFile: process.env.ATOLL_PREPARE_OS_RELEASE ?? '/etc/os-release',
    isSuperuser: process.getuid?.() === 0,
  }
}

/** @param {readonly string[]} args */
async function main(args) {
  const machine = thisMachine()
  const missing = args.includes('--packages')
    ? []
    : missingHostPackages(neededHostPackages(process.env), machine.path)
  if (missing.length > 0) checkHostPackagesInstallable(machine, missing)
  const { root } = machine
  const isComplete = missing.length === 0 && npmPackagesAreCurrent(root) && !needsBundle(root)
  if (!isComplete && !args.includes('--locked')) return rerunLocked(root, args)
  if (!npmPackagesAreCurrent(root)) await installNpmPackages(root)
  linkPinnedNode(root)
  if (missing.length > 0) await installHostPackages(machine)
  if (!isComplete && needsBundle(root)) await bundlePrograms(root)
  if (args.includes('--program')) process.stdout.write(`${atollProgram(root)}\n`)
}

/**
 * Runs before any change to the machine.
 * @param {Machine} machine
 * @param {ReadonlyArray<{ name: string, reason: string }>} missing
 */
function checkHostPackagesInstallable(machine, missing) {
  const names = missing.map(({ name }) => name).join(' ')
  const needed = missing.map(({ name, reason }) => `  ${name.padEnd(12)} ${reason}`).join('\n')
  const os = parseOsRelease(readFileSync(machine.osReleaseFile, 'utf8'))
  if (os.family === 'other') {
    throw new ExpectedFailure(
      `Atoll can install host packages on Debian only, and this is ${os.name}.\n` +
        `Install these packages yourself (names as in Debian), then run this again:\n${needed}`,
    )
  }
  if (!machine.isSuperuser) {
    throw new ExpectedFailure(
      `Host packages are missing, and only root can install them:\n${needed}\n` +
        `Run:  sudo ${process.execPath} ${join(machine.root, 'tools/prepare.mjs')}   (installs ${names})`,
    )
  }
}

/**
 * Runs one set-up at a time, because parallel ones would remove each other's packages. The lock is on the lockfile,
 * which always exists and needs no cleanup.
 * @param {string} root
 * @param {readonly string[]} args
 */
function rerunLocked(root, args) {
  const again = [process.execPath, fileURLToPath(import.meta.url), ...args, '--locked']
  const lock = [
    '--close',
    '--conflict-exit-code',
    `${lockIsTaken}`,
    join(root, 'package-lock.json'),
  ]
  const first = spawnSync('flock', ['--nonblock', ...lock, ...again], { stdio: 'inherit' })
  if (first.error)
    throw new ExpectedFailure(`Cannot run flock (package util-linux): ${first.error.message}`)
  if (first.status !== lockIsTaken) return exitLike(first)
  process.stderr.write('atoll: waiting for another set-up of this clone\n')
  exitLike(spawnSync('flock', [...lock, ...again], { stdio: 'inherit' }))
}

/** @param {Machine} machine */
async function installHostPackages(machine) {
  const status = await runSource(machine.root, 'apps/node/src/setup/main.ts', 'inherit')
  if (status !== 0) process.exitCode = status
}

/**
 * Returns false for a user who may only read the clone, and on a read-only file system: then the sources run.
 * @param {string} root
 */
function needsBundle(root) {
  if (bundleIsCurrent(root)) return false
  try {
    accessSync(join(root, 'node_modules'), constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Ignores a failure, for example on a full disk: then the sources run.
 * @param {string} root
 */
async function bundlePrograms(root) {
  process.stderr.write('atoll: bundling the programs\n')
  await runSource(root, 'tools/bundle/main.ts', 'ignore')
}

/**
 * @param {string} root
 * @param {string} program
 * @param {'inherit' | 'ignore'} stderr
 * @returns {Promise<number>} its exit status
 */
function runSource(root, program, stderr) {
  const child = spawn(
    join(root, 'node_modules/.bin/node'),
    ['--disable-warning=ExperimentalWarning', program],
    { cwd: root, stdio: ['inherit', 'ignore', stderr] },
  )
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

/** @param {{ status: number | null }} result */
function exitLike({ status }) {
  process.exitCode = status ?? 1
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2)).catch((error) => {
    const message = error instanceof Error ? error.message : String(error)
    process.stderr.write(`atoll: ${message}\n`)
    process.exitCode = 1
  })
}
