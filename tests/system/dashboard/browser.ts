/** A real browser for tests: Debian's Chromium, installed when it is missing. */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { run } from '@atoll/kit/run'
import { buildSteadyNetwork } from './steady-network.ts'

const program = '/usr/bin/chromium'
const installLimitMs = 600_000
const navigationLimitMs = 300_000

/** `home` is the home folder of the browser's user, with the certificates that it trusts. */
export async function openBrowser(home?: string): Promise<Browser> {
  if (!existsSync(program)) await installPackages('chromium', 'fonts-dejavu-core')
  return chromium.launch({
    executablePath: program,
    env: {
      ...process.env,
      ...(home !== undefined && { HOME: home }),
      LD_PRELOAD: await buildSteadyNetwork(),
    },
    // Chromium refuses its own sandbox as root. Pages of these tests come from this machine alone.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
}

/** Opens a page that waits as long for a navigation as a busy machine may take. */
export async function newPatientPage(browser: Browser): Promise<Page> {
  const page = await browser.newPage()
  page.setDefaultTimeout(navigationLimitMs)
  return page
}

/** Makes a browser with this home folder trust the certificate of a CA, as its settings page does. */
export async function trustAuthority(home: string, certificateFile: string): Promise<void> {
  if (!existsSync('/usr/bin/certutil')) await installPackages('libnss3-tools')
  const folder = join(home, '.pki/nssdb')
  await mkdir(folder, { recursive: true })
  const database = ['-d', `sql:${folder}`]
  await run('certutil', [...database, '-N', '--empty-password'])
  await run('certutil', [...database, '-A', '-n', 'atoll', '-t', 'C,,', '-i', certificateFile])
}

async function installPackages(...packages: readonly string[]): Promise<void> {
  process.stdout.write(`installing Debian packages: ${packages.join(' ')}\n`)
  const options = {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    timeoutMs: installLimitMs,
  }
  const lockOptions = ['-o', 'DPkg::Lock::Timeout=300']
  // Stale package lists may still work; if not, the installation fails.
  await run('apt-get', [...lockOptions, 'update'], options).catch(() => {})
  await run(
    'apt-get',
    [...lockOptions, 'install', '--yes', '--no-install-recommends', ...packages],
    options,
  )
}
