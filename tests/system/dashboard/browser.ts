/** A real browser for tests: Debian's Chromium, installed when it is missing. */
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import type { Browser } from 'playwright-core'
import { run } from '@atoll/kit/run'

const program = '/usr/bin/chromium'
const installLimitMs = 600_000

export async function openBrowser(): Promise<Browser> {
  if (!existsSync(program)) await installChromium()
  return chromium.launch({
    executablePath: program,
    // Chromium refuses its own sandbox as root. Pages of these tests come from this machine alone.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
}

async function installChromium(): Promise<void> {
  process.stdout.write('installing Chromium from Debian packages\n')
  const options = {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    timeoutMs: installLimitMs,
  }
  const lockOptions = ['-o', 'DPkg::Lock::Timeout=300']
  // Stale package lists may still work; if not, the installation fails.
  await run('apt-get', [...lockOptions, 'update'], options).catch(() => {})
  const packages = ['chromium', 'fonts-dejavu-core']
  await run(
    'apt-get',
    [...lockOptions, 'install', '--yes', '--no-install-recommends', ...packages],
    options,
  )
}
