/** Folders of tests that name the process that owns them, so that a later test can remove what a killed one left. */
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const ownerFile = 'owner'
/** A folder without an owner may be about to get one, or belong to a test of an older release. */
const unownedMs = 24 * 60 * 60 * 1000

/** Makes a folder whose path begins with `prefix`. Removes those with this prefix whose owners have ended. */
export async function createOwnedFolder(prefix: string): Promise<string> {
  await removeAbandonedFolders(prefix)
  const path = await mkdtemp(prefix)
  await noteOwner(path)
  return path
}

async function removeAbandonedFolders(prefix: string): Promise<void> {
  for (const path of globSync(`${prefix}*`)) {
    if (await isAbandoned(path)) await rm(path, { recursive: true, force: true })
  }
}

async function isAbandoned(path: string): Promise<boolean> {
  const owner = await readOwner(path)
  if (owner !== '') return !isAlive(owner)
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && Date.now() - found.mtimeMs > unownedMs
}

/** Notes that this process owns the folder. */
export async function noteOwner(path: string): Promise<void> {
  await writeFile(join(path, ownerFile), describeProcess(process.pid) ?? '')
}

/** Whether the process that owns the folder runs. */
export async function isOwned(path: string): Promise<boolean> {
  return isAlive(await readOwner(path))
}

function readOwner(path: string): Promise<string> {
  return readFile(join(path, ownerFile), 'utf8').catch(() => '')
}

function isAlive(owner: string): boolean {
  const pid = Number(owner.split(' ')[0])
  return pid > 0 && describeProcess(pid) === owner
}

/** Returns the process ID and the start time, which no later process with this ID has. */
function describeProcess(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may have spaces; the start time is the 22nd field.
    return `${pid} ${text.slice(text.lastIndexOf(')') + 2).split(' ')[19]}`
  } catch {
    return undefined
  }
}
