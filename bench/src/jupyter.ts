/**
 * Bare Jupyter kernel in a sandbox. Its packages come from the host's Debian mirror: the sandbox may have no network.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import type { Sandbox } from 'e2b'

export interface Jupyter {
  /** Executes `1 + 1` again and again in the sandbox; returns the milliseconds of each. */
  timeExecutions(count: number): Promise<readonly number[]>
}

const packages = ['python3-ipykernel', 'python3-jupyter-client']
const program = '/tmp/jupyter.py'
/** Short: the paths of its sockets begin with it, and their length is limited. */
const connectionFile = '/tmp/jupyter.json'
const unlimited = { timeoutMs: 0, requestTimeoutMs: 0 }

export async function startJupyter(sandbox: Sandbox): Promise<Jupyter> {
  await installPackages(sandbox)
  await sandbox.files.write(
    program,
    await readFile(join(import.meta.dirname, 'jupyter.py'), 'utf8'),
  )
  const ready = Promise.withResolvers<void>()
  const serving = await sandbox.commands.run(`python3 ${program} serve ${connectionFile}`, {
    ...unlimited,
    background: true,
    onStdout: () => ready.resolve(),
  })
  await Promise.race([ready.promise, serving.wait()])
  return {
    async timeExecutions(count) {
      const command = `python3 ${program} time ${connectionFile} ${count}`
      return JSON.parse((await sandbox.commands.run(command, unlimited)).stdout)
    },
  }
}

async function installPackages(sandbox: Sandbox): Promise<void> {
  const dir = await mkdtemp('/var/tmp/atoll-bench-')
  try {
    await mkdir(join(dir, 'partial'))
    await writeFile(join(dir, 'status'), await sandbox.files.read('/var/lib/dpkg/status'))
    await run('apt-get', [...downloadOptions(dir), ...packages], { timeoutMs: 600_000 })
    const names = (await readdir(dir)).filter((name) => name.endsWith('.deb'))
    for (const name of names) {
      const content = new Blob([await readFile(join(dir, name))])
      await sandbox.files.write(`/tmp/debs/${name}`, content)
    }
    await sandbox.commands.run('dpkg --install /tmp/debs/*.deb', { ...unlimited, user: 'root' })
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** Downloads what the sandbox lacks: `status` lists the packages that it has. */
function downloadOptions(dir: string): readonly string[] {
  const settings = {
    'Dir::State::status': join(dir, 'status'),
    'Dir::Cache::archives': dir,
    // A download changes nothing on the host, so it needs no lock.
    'Debug::NoLocking': '1',
    // The folder is for root alone.
    'APT::Sandbox::User': 'root',
  }
  return [
    ...['install', '--download-only', '--yes', '--no-install-recommends'],
    ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
  ]
}
